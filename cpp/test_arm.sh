#!/usr/bin/env bash
# Builds the kernels for AArch64 and runs their tests under QEMU, on Debian.
# Usage: cpp/test_arm.sh [python] [pytest arguments]
# An AArch64 Python and its libraries are fetched into build/arm once; packages of the machine are not changed.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${1:-python3}"
shift $(($# < 1 ? $# : 1))
python="$(command -v "$python")"
case "$python" in /*) ;; *) python="$PWD/$python" ;; esac
export PATH="$(dirname "$python"):$PATH" # cmake and ninja often live beside python
compiler=aarch64-linux-gnu-g++
for tool in "$compiler":g++-aarch64-linux-gnu qemu-aarch64:qemu-user dpkg-deb:dpkg; do
  command -v "${tool%%:*}" >/dev/null || { echo "${tool%%:*} is missing; install Debian's package ${tool##*:}"; exit 1; }
done
arm="$root/build/arm"

if [ ! -e "$arm/complete" ]; then
  rm -rf "$arm"
  mkdir -p "$arm/state/lists/partial" "$arm/cache/archives/partial" "$arm/wheels"
  touch "$arm/state/status"
  suite="$(. /etc/os-release && echo "$VERSION_CODENAME")"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
    >"$arm/sources.list"
  cat >"$arm/apt.conf" <<APT
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Debug::NoLocking "true";
Dir::State "$arm/state";
Dir::State::status "$arm/state/status";
Dir::Cache "$arm/cache";
Dir::Etc::sourcelist "$arm/sources.list";
Dir::Etc::sourceparts "-";
APT
  export APT_CONFIG="$arm/apt.conf"
  apt-get -q update
  apt-get -q -y --download-only install python3 libpython3-dev libstdc++6
  for package in "$arm"/cache/archives/*.deb; do dpkg-deb -x "$package" "$arm/system"; done
  version="$(basename "$(readlink -f "$arm/system/usr/bin/python3")")"
  "$python" -m pip download -q -d "$arm/wheels" --only-binary=:all: --python-version "${version#python}" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    numpy scipy scikit-learn narwhals pyarrow pytest hypothesis
  for wheel in "$arm"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$arm/site"; done
  touch "$arm/complete"
fi
version="$(basename "$(readlink -f "$arm/system/usr/bin/python3")")"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cmake -S "$root" -B "$arm/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DPython_EXECUTABLE="$python" -DNB_SUFFIX=.abi.so \
  -DPython_INCLUDE_DIR="$arm/system/usr/include/$version" -DCMAKE_CXX_FLAGS="-idirafter $arm/system/usr/include" \
  -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
cmake --build "$arm/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

cp -r "$root/src/tallybayes" "$work/tallybayes"
rm -f "$work"/tallybayes/kernels/_compiled*.so
cp "$arm/build/_compiled.abi.so" "$work/tallybayes/kernels/_compiled.so"
cd "$work"
# Processes that start another Python would start it without QEMU.
PYTHONPATH="$work:$arm/site" PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$arm/system" "$arm/system/usr/bin/$version" \
  -m pytest -q -p no:cacheprovider --rootdir "$root/tests/unit/kernels" -c /dev/null "$root/tests/unit/kernels" \
  --ignore "$root/tests/unit/kernels/test_choice.py" "$@"
