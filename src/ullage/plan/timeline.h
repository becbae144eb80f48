// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a choice comes to: the step is gone through op by op; what an op needs and is not there is brought back first,
// with all that this needs in turn. A value leaves at its last use, which is known only afterwards: so the level is
// summed up at the end.

#include "ullage/plan/problem.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct Outcome {
  bool possible = false;  // else something that is needed cannot be had
  std::int64_t peak = 0;
  std::int32_t peak_at = 0;  // its position
  double over = 0;           // bytes above the budget, summed over the positions
  double rerun_seconds = 0;
  std::int64_t written = 0;
  std::int64_t read = 0;
  std::int64_t moves = 0;  // spills, restores, values that reruns brought back
  double seconds = 0;      // all that it costs
};

// Is it spilled while one step ends and the next begins?
bool away(const Problem::Moved& value, const Choice& choice);

// What happened, for the schedule.
struct Happening {
  enum class What { Static, Op, Rerun, Restore };
  What what = What::Static;
  std::int32_t position = 0;  // of the problem: at it, or on its behalf
  std::int32_t which = -1;    // recipe or value
  std::int64_t level = 0;     // most bytes present then
};
struct Stay {  // one presence of a value: after `from` until after `to` (Static: until the program frees it there)
  enum class End { Last, Overwritten, Chosen };
  std::int32_t value = 0;
  std::int32_t from = 0;  // index into `happenings`; -1: since before the step
  std::int32_t to = 0;
  End end = End::Last;
  bool written = false;  // a copy of it is on the disk
};
struct Record {
  std::vector<Happening> happenings;
  std::vector<Stay> stays;
};

class Timeline final {
 public:
  explicit Timeline(const Problem& problem);

  Outcome run(const Choice& choice, std::int64_t budget);
  // Likewise, and tells all that happens.
  Outcome run(const Choice& choice, std::int64_t budget, Record& record);

  // How many ops all runs went through.
  std::uint64_t effort() const { return effort_; }

 private:
  struct State {
    std::int32_t from = 0;
    std::int32_t to = 0;
    bool present = false;
    bool written = false;
    bool remade = false;       // its last stay began with a rerun
    std::int32_t record = -1;  // of its last stay
  };

  Outcome go(const Choice& choice, std::int64_t budget);
  void begin(const Choice& choice);
  bool play(const Problem::Position& at, const Choice& choice);
  bool play_end(const Problem::Position& at, const Choice& choice);
  bool fetch(std::int32_t value);
  bool remake(const Problem::Recipe& recipe);
  bool use(Range reads);
  const Problem::Recipe* way(const Problem::Moved& value) const;
  void step_to(Happening::What what, std::int32_t which, std::int64_t need);
  void make(const Problem::Made& made, bool by_program);
  void come(std::int32_t value);
  void leave(std::int32_t value, Stay::End end);
  void freed(std::int32_t value, std::int32_t until);
  void finish(std::int64_t budget, Outcome& outcome);

  const Problem& problem_;
  Record* record_ = nullptr;
  std::vector<State> state_;
  std::vector<std::int64_t> change_;  // of the level, when a happening begins
  std::vector<std::int64_t> need_;    // of each happening, beside what is moved
  std::vector<std::int32_t> where_;   // its position
  std::vector<std::int32_t> remade_;  // on behalf of the op at hand
  std::int32_t now_ = -1;
  std::int32_t position_ = 0;
  std::int32_t op_ = 0;
  std::int64_t base_ = 0;
  Outcome outcome_;
  std::uint64_t effort_ = 0;
};

}  // namespace ullage::plan
