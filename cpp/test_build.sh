#!/usr/bin/env bash
# Builds the kernels outside the source tree with the compiler CXX (g++ by default), and runs their tests.
# Usage: cpp/test_build.sh (plain | sanitize) [python] [pytest arguments]
# sanitize: with the address and undefined-behavior sanitizers (Clang's come in Debian's libclang-rt-14-dev).
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
how="$1" python="${2:-python3}"
shift $(($# < 2 ? $# : 2))
case "$python" in */*) python="$(cd "$(dirname "$python")" && pwd)/$(basename "$python")" ;; esac # it is run from elsewhere
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export PATH="$(dirname "$(command -v "$python")"):$PATH" # cmake and ninja often live beside python
compiler="${CXX:-g++}"
command -v "$compiler" >/dev/null || { echo "there is no $compiler here; install it, or set CXX to another compiler"; exit 1; }

options=(-DCMAKE_BUILD_TYPE=Release) preload=
if [ "$how" = sanitize ]; then
  flags="-g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
  preload="$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libubsan.so)"
  if "$compiler" --version | grep -q clang; then
    flags="$flags -shared-libasan"
    preload="$("$compiler" -print-file-name="libclang_rt.asan-$(uname -m).so")"
  fi
  options=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="$flags")
fi
cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" \
  "${options[@]}" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

cp -r "$root/src/tallybayes" "$work/tallybayes"
rm -f "$work"/tallybayes/kernels/_compiled*.so
cp "$work"/build/_compiled*.so "$work/tallybayes/kernels/"

# Python itself leaks on purpose, so leaks are not reported. The finder of an editable install precedes sys.path; it is
# disabled so that the copy is imported, also by the Pythons that tests start.
cat >"$work/sitecustomize.py" <<'PYTHON'
import sys

sys.meta_path = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__.lower()]
PYTHON
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH="$work" PYTHONDONTWRITEBYTECODE=1
cd "$work"
LD_PRELOAD="$preload" "$python" - "$root/tests/unit/kernels" "$@" <<'PYTHON'
import os
import sys

import pytest

import tallybayes.kernels._compiled as compiled

assert compiled.__file__.startswith(os.environ["PYTHONPATH"]), compiled.__file__
print("built by", compiled.compiler())
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", sys.argv[1], "-c", "/dev/null", *sys.argv[1:]]))
PYTHON
