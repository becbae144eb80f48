// SPDX-License-Identifier: Apache-2.0
#pragma once

// A made-up program that allocates, runs ops on two threads, saves tensors, and states roles and step borders. It is
// the same for one seed. It logs to an EventLog and, if there is one, to an ExpectedTake.

#include "expected_take.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ullage::trace::test {

class RandomProgram final {
 public:
  RandomProgram(EventLog& log, unsigned seed) : log_(log), random_(seed) {}

  void begin_take(std::vector<Knob> knobs);
  void run(std::uint64_t actions);
  void train_steps(std::uint64_t steps);  // all steps are the same; a border follows each
  Take finish(const ProcessFigures& figures, Take::End why);

  std::uint64_t live_bytes() const { return live_bytes_; }

 private:
  struct Live {
    StorageId id;
    std::uint64_t bytes = 0;
    bool parameter = false;
  };
  struct Open {
    OpId id;
    std::uint32_t thread = 0;
  };

  std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_); }
  EventLog::Instant now();
  std::size_t allocate(std::uint32_t thread, Bytes bytes);
  void free(std::size_t index);
  void begin_op();
  void end_op(std::size_t index);
  void act();
  void tell();
  std::vector<UseView> some_uses(TensorUse::How how);

  EventLog& log_;
  std::mt19937_64 random_;
  std::optional<ExpectedTake> expected_;
  std::uint64_t nanoseconds_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::vector<Live> live_;
  std::vector<Open> open_;
};

}  // namespace ullage::trace::test
