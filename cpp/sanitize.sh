#!/usr/bin/env bash
# Builds the kernels with the address and undefined-behaviour sanitizers, outside the source tree, and runs their tests.
# Usage: cpp/sanitize.sh [python] [pytest arguments]
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${1:-python3}"
[ $# -gt 0 ] && shift
case "$python" in */*) python="$(cd "$(dirname "$python")" && pwd)/$(basename "$python")" ;; esac # it is run from elsewhere
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export PATH="$(dirname "$(command -v "$python")"):$PATH" # cmake and ninja often live beside python
compiler="${CXX:-g++}"

cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$compiler" \
  -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" \
  -DCMAKE_CXX_FLAGS="-g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
  >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

cp -r "$root/src/tallybayes" "$work/tallybayes"
rm -f "$work"/tallybayes/kernels/_compiled*.so
cp "$work"/build/_compiled*.so "$work/tallybayes/kernels/"

# Python itself leaks on purpose, so leaks are not reported. An editable install answers imports before sys.path does;
# its finder is put aside so that the copy with the sanitizers is found.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH="$work" PYTHONDONTWRITEBYTECODE=1
export LD_PRELOAD="$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libubsan.so)"
cd "$work"
"$python" - "$root/tests/unit/kernels" "$@" <<'PYTHON'
import os
import sys

sys.meta_path = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__.lower()]
import pytest

import tallybayes.kernels._compiled as compiled

assert compiled.__file__.startswith(os.environ["PYTHONPATH"]), compiled.__file__
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", sys.argv[1], "-c", "/dev/null", *sys.argv[1:]]))
PYTHON
