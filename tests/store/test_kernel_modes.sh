#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the store's tests under each setting of the kernel: huge pages always, madvise, never; strict overcommit. The settings apply to
# the whole machine, so this runs only if ULLAGE_KERNEL_MODES=1 permits changing them (CI). They are restored at the end.
# usage: test_kernel_modes.sh STORE_TEST SYSTEM_TEST
set -uo pipefail
huge=/sys/kernel/mm/transparent_hugepage/enabled
overcommit=/proc/sys/vm/overcommit_memory

skip() { echo "skipped: kernel modes: $1"; exit 77; }
[ "${ULLAGE_KERNEL_MODES:-}" = 1 ] || skip "they are the whole machine's; ULLAGE_KERNEL_MODES=1 allows it"
[ -w "$huge" ] && [ -w "$overcommit" ] || skip "$huge or $overcommit cannot be written here"

huge_before=$(sed 's/.*\[\(.*\)\].*/\1/' "$huge")
overcommit_before=$(cat "$overcommit")
trap 'echo "$huge_before" > "$huge"; echo "$overcommit_before" > "$overcommit"' EXIT

without="-*WithNothingBehind"  # these do not depend on the kernel
failed=0
run() {  # half of the cases at a time on each of two cores
  echo "== $1"
  local program half halves
  for program in "${@:2}"; do
    halves=()
    for half in 0 1; do
      GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$half "$program" --gtest_brief=1 --gtest_filter="${filter:-$without}" &
      halves+=($!)
    done
    for half in "${halves[@]}"; do wait "$half" || failed=1; done
  done
}
for mode in always madvise never; do
  echo "$mode" > "$huge" || { failed=1; continue; }
  run "transparent huge pages: $mode" "$@"
done
echo "$huge_before" > "$huge"
echo 2 > "$overcommit"
# Tests that need a terabyte of addresses at once get only what strict overcommit allows.
filter="$without:OsPages.ReservesWithoutBytes" run "strict overcommit" "$@"
exit $failed
