// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds where steps end in a program that knows nothing of Ullage, from its ops alone, as they come. The recorder uses
// it to end a rehearsal in time, and the readers of a file use it too. A step ends with a call of the optimizer that is
// called least often. A GAN has two, and its critic may be updated five times a step. If there is no optimizer, a step
// is a turn of the loop (period.h). Turns are looked for only after the last op that used a parameter for the first
// time, because a loop that makes or loads layers is no step.

#include "ullage/base/ids.h"
#include "ullage/trace/take/optimizer_calls.h"

#include <cstdint>
#include <vector>

namespace ullage::trace {

class StepFinder final {
 public:
  enum class Kind : std::uint8_t {
    Other,     // anything else: forward, loading, evaluation
    Backward,  // run by autograd's engine
    Update,    // writes a parameter outside backward
  };

  // How many borders are kept, and how many ops of a program without optimizers. Steps of optimizers, and steps that
  // the program reports, are counted beyond this. Readers of a file set no such limit: all its ops are in memory
  // anyway.
  static constexpr std::uint64_t kMostKept = 1u << 20;
  explicit StepFinder(std::uint64_t most_kept = kMostKept);

  // Adds an op; ops come in the order of their begins. `token` is equal for ops of the same name. `level` is the live
  // bytes before the op. `parameter` is what an Update writes. An update before the first backward pass is loading.
  void op(std::uint64_t token, Kind kind, std::uint64_t level, StorageId parameter = {});
  // The newest op is a list op and writes this parameter too.
  void also_writes(StorageId parameter);
  // The newest op uses a leaf that requires grad. `followed`: the op is outside backward and autograd records it. An
  // update counts only if its parameter was followed at least once; the averages of weights that some programs keep
  // never are. No step is whole until each used parameter was updated, or kPatience calls went by without that (unused
  // heads).
  void parameter_used(StorageId parameter, bool followed = true);
  // To be called before the first op if the program was already running.
  void began_in_midst() { calls_.began_in_midst(); }
  // An optimizer was called at some time, maybe before the first op. From then on turns of a loop are no steps: a loop
  // may collate the samples of a batch.
  void optimizer_was_called();
  // The program itself reports that a step ends here. From then on only such reports count.
  void step_reported();
  // The program is over, so the last call of an optimizer is whole.
  void ended();

  // Ordinals of ops. Step i is [borders[i], borders[i + 1]); the first border is 0. The ops after the last border are
  // no whole step yet. If a call of an optimizer differs from those before, its end is known at the next backward pass.
  std::vector<std::uint64_t> borders() const;
  // The number of whole steps that are sure now. Counts the steps that the program reported. If it reported none,
  // counts those of optimizers (OptimizerCalls::whole_steps), else turns of a loop. Never falls. Cheap enough to call
  // after every op.
  std::uint64_t whole_steps();

  static constexpr std::uint64_t kPatience = OptimizerCalls::kPatience;

 private:
  void look_for_turns();
  void forget_turns();
  bool needs_turns() const { return reported_count_ == 0 && calls_.none() && !has_optimizer_; }

  std::uint64_t most_kept_;
  std::uint64_t ops_ = 0;
  OptimizerCalls calls_;
  bool any_parameter_ = false;
  bool any_backward_ = false;
  bool has_optimizer_ = false;  // optimizer_was_called()
  // For the ops before the first call of an optimizer and the first step_reported(), from op `first_kept_` on.
  std::uint64_t first_kept_ = 0;
  std::vector<std::uint64_t> tokens_;
  std::vector<std::uint64_t> levels_;
  std::uint64_t next_look_;   // how many ops there must be for the next look_for_turns()
  std::uint64_t turned_ = 0;  // whole steps according to turns of a loop
  std::vector<std::uint64_t> reported_;
  std::uint64_t reported_count_ = 0;
  std::uint64_t whole_ = 0;
};

}  // namespace ullage::trace
