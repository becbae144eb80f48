// SPDX-License-Identifier: Apache-2.0
#pragma once

// Simulates a schedule event by event, without the planner's code. Checks that everything an op reads is present and is
// the value that the program would have read, and counts the bytes that are present.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// All figures but `peak` and `peak_at` are those of the second of two steps under the same schedule.
struct Verified {
  Bytes peak;          // most bytes present at once in either step, in bytes asked for
  OpIndex peak_at;     // the op before, in or after which it is first reached
  Bytes resident;      // most resident bytes of the pool's own model for what is present: whole pages and slabs
  Seconds recomputes;  // time of all Recompute and BatchNorm
  Bytes written;       // by Spill and WriteAhead
  Bytes read;          // by Restore and ReadAhead
  std::uint64_t recomputed_ops = 0;
  std::uint64_t kept = 0;        // values that Recompute and BatchNorm made again and kept (Action::keeps)
  std::uint64_t spills = 0;      // values whose pages went, with a copy written now or before
  std::uint64_t restores = 0;    // values whose pages came back, by ReadAhead or Restore
  Table<OpIndex, Bytes> levels;  // for each op, the most bytes present from "before" to "after" it
};
// Simulates two steps; the second begins as the first ends. BadArgument, with the op, if the schedule
//   lets an op read what is not present, or another value than the program would have read;
//   recomputes an op that cannot be recomputed, or moves a storage that cannot be moved;
//   drops a value of a storage that the program has, and does not recompute it before the program frees the storage;
//   ends a step otherwise than it began: what outlives it is not present, or not away as `Schedule::away` says;
//   ends a step with a recomputed value or a hold that it has not dropped;
//   ends a step, or lets the program free a storage, after a WriteAhead without its Spill or a ReadAhead without its
//   Restore;
//   has more than `budget` bytes present;
//   has actions out of order, or at an op that the step does not have.
Result<Verified> verify(const Step& step, const Schedule& schedule, Bytes budget);

}  // namespace ullage::plan
