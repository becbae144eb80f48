// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the calls of a program's optimizers from the parameters that ops write. A call is a run of such updates (u)
// with no backward pass in between. It ends earlier if another op follows once the run equals the newest call of an
// optimizer. Calls that write mostly the same parameters belong to one optimizer.
//
//   ops     fwd bwd  u u u  fwd fwd bwd  u u  ...        D and G write other parameters: two optimizers
//                   [ D   )             [ G )            the step ends after G: the rarer or, if equal, the later one

#include "ullage/base/ids.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ullage::trace {

class OptimizerCalls final {
 public:
  // After so many calls of any optimizers, this class no longer waits for an optimizer's second call or for the update
  // of a parameter that was used.
  static constexpr std::uint64_t kPatience = 12;

  // Remembers at most `most_kept` calls for ends(), but counts all.
  explicit OptimizerCalls(std::uint64_t most_kept) : most_kept_(most_kept) {}

  // Call one of the next three for each op, in the order of their begins. `token` is equal for ops of the same name; it
  // goes into the hashes by which calls and steps are compared.
  //
  // An op outside backward writes a parameter. `op` is the op's ordinal; a list op calls this once per parameter. The
  // write is no update, and acts like other(), before the first backward pass. The same holds if autograd never
  // recorded an op that used the parameter.
  void update(std::uint64_t op, std::uint64_t token, StorageId parameter);
  void backward(std::uint64_t token);  // an op of the backward pass: ends the run of updates
  void other();                        // any other op
  void ended();                        // the program is over: ends the run of updates
  // The newest op uses this leaf that requires grad. `followed`: the op is outside backward and autograd records it.
  // Returns whether this is its first use.
  bool parameter_used(StorageId parameter, bool followed);

  // To be called before anything else if the program was already running. Then the optimizer's first call may show only
  // some of its parameters.
  void began_in_midst() { in_midst_ = true; }

  bool none() const { return optimizers_.empty(); }
  // The ends of the steps that are known now: for each the ordinal of the first op after it.
  std::vector<std::uint64_t> ends() const;
  // The number of whole steps, or 0 while that is not certain. It is certain if both hold:
  // - each optimizer was called twice and each used parameter updated, or kPatience calls went by without that;
  // - the backward passes and updates of one step equalled those of an earlier step, or kPatience steps all differed.
  // The number can fall if a rarer optimizer appears late.
  std::uint64_t whole_steps() const { return whole_; }

 private:
  struct Call {
    std::uint64_t end_op = 0;
    std::uint32_t optimizer = 0;
  };
  struct Optimizer {
    std::uint64_t calls = 0;
    std::uint64_t newest = 0;      // how many calls of all optimizers came before its newest one
    std::uint64_t parameters = 0;  // number of those written in the newest call
    std::uint64_t hash = 0;        // of the updates in the newest call
  };
  struct Parameter {
    bool used = false;
    bool followed = false;
    bool updated = false;
    bool waits = false;             // it is in waiting_
    std::uint64_t first = 0;        // how many runs of updates had begun at its first use
    std::vector<std::uint32_t> of;  // optimizers that wrote it
  };
  struct Run {  // a run of updates
    bool open = false;
    bool counted = false;  // it was counted as a call
    std::uint64_t last_op = 0;
    std::uint64_t hash = 0;
    std::vector<std::uint64_t> parameters;
  };
  struct Work {  // backward passes and updates from the end of one call to the end of the next
    std::uint64_t hash = 0;
    std::uint32_t optimizer = 0;
  };

  void count_run();
  std::uint32_t whose(std::vector<std::uint64_t>& parameters);
  std::size_t chosen() const;
  bool is_sure();
  bool all_were_updated();
  bool came_again(std::size_t chosen) const;
  Parameter* known(StorageId parameter);

  std::uint64_t most_kept_;
  std::unordered_map<std::uint64_t, Parameter> parameters_;
  std::vector<std::uint64_t> waiting_;  // parameters used before and after a run of updates began, not updated yet
  std::vector<Optimizer> optimizers_;
  std::vector<Call> calls_;
  std::uint64_t call_count_ = 0;
  std::uint64_t runs_ = 0;  // number of runs begun
  Run run_;
  std::uint64_t work_hash_ = 0;
  std::vector<Work> work_;  // empty once steps are sure
  bool in_midst_ = false;
  bool any_backward_ = false;
  bool sure_ = false;
  std::uint64_t whole_ = 0;  // once steps are sure: how often the optimizer that ends steps was called
};

}  // namespace ullage::trace
