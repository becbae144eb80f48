#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a new folder, moves the folder, builds another project against it, and runs that. The example of
# docs/train.md is part of that project.
# usage: test_find_package.sh CMAKE BUILD_FOLDER COMPILER TORCH_FOLDER
set -euo pipefail
cmake=$1 build=$2 compiler=$3 torch=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/moved"  # the installed files must not depend on where they are
# Torch's headers take a minute to compile. Paths in `work` are relative for ccache, because `work` is new each time.
launcher=()
command -v ccache > /dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER="$cmake;-E;env;CCACHE_BASEDIR=$work;CCACHE_NOHASHDIR=1;ccache")
"$cmake" -S "$here/consumer" -B "$work/build" "${launcher[@]}" "-DCMAKE_PREFIX_PATH=$work/moved;$torch" \
  -DCMAKE_CXX_COMPILER="$compiler" -DTRAIN="$([ -d "$torch/share/cmake/Torch" ] && [ ! -e "$torch/lib/libtorch_cuda.so" ] && echo ON)" > "$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work/build" > "$work/build.log" || { cat "$work/build.log"; exit 1; }

expect() {
  [ "$2" = "$3" ] || { echo "$1: expected '$2', got '$3'"; exit 1; }
}
expect "headers" "base/bytes.h base/check.h base/knob.h base/result.h runtime/c_api.h runtime/runtime.h \
train/accumulation.h train/autocast_guard.h train/blocks.h train/checkpoint.h train/classifiers.h train/grad_scaler.h train/state_dict.h" \
  "$(cd "$work/moved/include/ullage" && find . -name '*.h' -printf '%P\n' | sort | paste -sd ' ')"
expect "a plain run" "0 0" "$("$work/build/consumer")"
expect "under a budget" "1 4294967296" "$("$work/moved/bin/ullage" run --quiet --memory 4GiB -- "$work/build/consumer")"
diff <(sed -n '/^```cpp$/,/^```$/{/^```/d;p}' "$here/../../docs/train.md" | head -n "$(tail -n +4 "$here/consumer/train.cpp" | wc -l)") \
  <(tail -n +4 "$here/consumer/train.cpp") || { echo "docs/train.md has another example than consumer/train.cpp"; exit 1; }
if [ -x "$work/build/train" ]; then  # a CUDA build's TorchConfig.cmake wants a CUDA toolkit
  # Nothing of the runtime is in it, and it takes the budget of `ullage run` like any program, with the same result.
  ! ldd "$work/build/train" | grep -q libullage || { echo "the training example is linked to the runtime"; exit 1; }
  plain=$("$work/build/train")
  expect "training under a budget" "$plain" "$("$work/moved/bin/ullage" run --quiet --memory 400MiB -- "$work/build/train")"
  echo "$plain"
  expect "a file of weights" "6 1000" "$("$work/build/classify" "$work/weights.pt")"
else
  echo "skipped: Ullage::train was not built, because this torch's CMake files need a CUDA toolkit"
fi
echo "installed, moved, found, built, run"
