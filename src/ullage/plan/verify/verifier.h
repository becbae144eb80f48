// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries a schedule out on paper, event by event, with nothing of the planner's: is everything that is read there, is
// it the value that the program would have read, and how many bytes are present at most?

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// Times and copies are those of a step that follows one under the same schedule.
struct Verified {
  Bytes peak;          // most bytes present at once, bytes asked for
  OpIndex peak_at;     // the op before, in or after which it is first reached
  Bytes resident;      // most bytes that the pool's own model holds behind what is present: whole pages, slabs
  Seconds recomputes;  // time of all Recompute and BatchNorm
  Bytes written;       // by Spill and WriteAhead
  Bytes read;          // by Restore and ReadAhead
  std::uint64_t recomputed_ops = 0;
  std::uint64_t kept = 0;        // values that these brought back
  std::uint64_t spills = 0;      // whose bytes went, written now or before
  std::uint64_t restores = 0;    // whose bytes came back, ahead or not
  Table<OpIndex, Bytes> levels;  // of each op of the step: the most present from its "before" to its "after"
};
// BadArgument, with the op, where the schedule would make a program read what is not there or not what it should be,
// where it uses what cannot be used (an op that cannot be recomputed, a storage that cannot be moved), where it drops
// what the program still has and does not make it again before that is freed, where a step would not begin as the one
// before did, or where more than `budget` are present. The steps that follow one another are looked at too: the second
// begins as the first ends.
Result<Verified> verify(const Step& step, const Schedule& schedule, Bytes budget);

}  // namespace ullage::plan
