#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests `pip install .` as a user runs it: a wheel, a new environment with torch, the package's tests in it, and another
# project built against it.
# Run it by hand: it compiles everything again, about 15 minutes on two cores.
# usage: test_wheel.sh PYTHON_WITH_TORCH [FOLDER]      FOLDER is kept; without it, a new folder is used and removed
set -euo pipefail
python=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
if [ $# -gt 1 ]; then
  mkdir -p "$2" && work=$(cd "$2" && pwd)
else
  work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fi

"$python" -m pip wheel --no-deps -C build-dir="$work/build" -w "$work/wheels" "$root"
torch=$("$python" -c 'import torch; print(torch.__version__.split("+")[0])')
"$python" -m venv --clear "$work/new"
"$work/new/bin/pip" install -q "torch==$torch" numpy "$work"/wheels/ullage-*.whl
(cd "$work" && "$work/new/bin/python" -c 'import sys, ullage; sys.exit(not ullage.__file__.startswith(sys.prefix))')
"$work/new/bin/python" "$root/tests/python/test_package.py" "$work/new/bin"
cmake -S "$here/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/new" > /dev/null
cmake --build "$work/consumer" > /dev/null
echo "built, installed, tested, found"
