#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a new folder, moves the folder, builds another project against it, and runs that.
# usage: test_find_package.sh CMAKE BUILD_FOLDER COMPILER
set -euo pipefail
cmake=$1 build=$2 compiler=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/moved"  # the installed files must not depend on where they are
"$cmake" -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_CXX_COMPILER="$compiler" > "$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work/build" > "$work/build.log" || { cat "$work/build.log"; exit 1; }

expect() {
  [ "$2" = "$3" ] || { echo "$1: expected '$2', got '$3'"; exit 1; }
}
expect "headers" "base/bytes.h base/check.h base/knob.h base/result.h runtime/c_api.h runtime/runtime.h" \
  "$(cd "$work/moved/include/ullage" && find . -name '*.h' -printf '%P\n' | sort | paste -sd ' ')"
expect "a plain run" "0 0" "$("$work/build/consumer")"
expect "under a budget" "1 4294967296" "$("$work/moved/bin/ullage" run --quiet --memory 4GiB -- "$work/build/consumer")"
echo "installed, moved, found, built, run"
