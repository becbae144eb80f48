// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where steps end in a program that knows nothing of Ullage, told from its ops alone, as they come: by the recorder, to
// end a rehearsal in time, and by the readers of its file. A step ends with the call of an optimizer that comes least
// often (a GAN has two, a critic may run five times); without optimizers with a turn of the loop (period.h).

#include "ullage/base/ids.h"
#include "ullage/trace/take/optimizer_calls.h"

#include <cstdint>
#include <vector>

namespace ullage::trace {

class StepFinder final {
 public:
  enum class Kind : std::uint8_t {
    Other,     // forward, loading, evaluation
    Backward,  // run by autograd's engine
    Update,    // outside backward, writes a parameter
  };

  // Borders, and ops of a program without optimizers, are kept up to this many; steps are counted beyond it. Readers of
  // a file, who have all its ops in memory anyway, ask for more.
  static constexpr std::uint64_t kMostKept = 1u << 20;
  explicit StepFinder(std::uint64_t most_kept = kMostKept);

  // One op, in the order of their begins. `token`: equal for ops of the same name. `level`: live bytes before it.
  // `parameter`: of Update the parameter it writes. An update before any backward pass is loading.
  void op(std::uint64_t token, Kind kind, std::uint64_t level, StorageId parameter = {});
  // The op just told is a list op, and writes this one too.
  void also_writes(StorageId parameter);
  // A leaf that requires grad was used by the op just told. `followed`: outside backward, and operations were being
  // recorded for autograd. Updates count of parameters alone that were followed once (not the average of the weights
  // that some programs keep). A step is not whole before each parameter used was updated, or the program went on for
  // `kPatience` calls without it (unused heads).
  void parameter_used(StorageId parameter, bool followed = true);
  // Before the first op: the program runs already.
  void began_in_midst() { calls_.began_in_midst(); }
  // The program itself says that a step ends here; from then on only that counts.
  void step_told();
  // The program is over: the call of an optimizer that was last is whole, whatever would have come.
  void ended();

  // Ordinals of ops: step i is [borders[i], borders[i + 1]); the first is 0. What follows the last border is no whole
  // step yet. Of a call of an optimizer that differs from those before it, the end is known when a backward pass begins
  // after it.
  std::vector<std::uint64_t> borders() const;
  // Whole steps of which we can be sure, now: told ones, or such whose sequence came again. Never goes back. Cheap when
  // asked after every op.
  std::uint64_t whole_steps();

  static constexpr std::uint64_t kPatience = OptimizerCalls::kPatience;

 private:
  void look_for_turns();
  bool needs_turns() const { return told_count_ == 0 && calls_.none(); }

  std::uint64_t most_kept_;
  std::uint64_t ops_ = 0;
  OptimizerCalls calls_;
  bool any_parameter_ = false;
  bool any_backward_ = false;
  // Of ops before the first call of an optimizer.
  std::vector<std::uint64_t> tokens_;
  std::vector<std::uint64_t> levels_;
  std::uint64_t next_look_;   // as many ops must be there
  std::uint64_t turned_ = 0;  // whole steps by turns of a loop
  std::vector<std::uint64_t> told_;
  std::uint64_t told_count_ = 0;
  std::uint64_t whole_ = 0;
};

}  // namespace ullage::trace
