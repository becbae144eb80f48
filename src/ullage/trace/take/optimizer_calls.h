// SPDX-License-Identifier: Apache-2.0
#pragma once

// The calls of a program's optimizers, told from the parameters that ops write: a call is a run of such updates with no
// backward pass within. Calls that write mostly the same parameters are calls of one optimizer.
//
//   ops     fwd bwd  u u u  fwd fwd bwd  u u  ...        D, G: two optimizers by what they write
//                   [ D   )             [ G )            the step ends behind G, the rarer one or the one that came
//                   last

#include "ullage/base/ids.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ullage::trace {

class OptimizerCalls final {
 public:
  static constexpr std::uint64_t kPatience = 12;  // calls

  // At most so many calls are remembered for ends(); counted are all.
  explicit OptimizerCalls(std::uint64_t most_kept) : most_kept_(most_kept) {}

  // `op` is the ordinal of the op, of which there is one such call (of list ops one for each parameter).
  void update(std::uint64_t op, std::uint64_t token, StorageId parameter);
  void backward(std::uint64_t token);
  void other();  // any other op
  void ended();
  void parameter_used(StorageId parameter, bool followed);

  // What came before the first op told is not known: the first call may show only some of its optimizer's parameters.
  void began_in_midst() { in_midst_ = true; }

  bool none() const { return optimizers_.empty(); }
  // Ordinals of the ops at which the steps end that are known now: of each the first op that is not in it.
  std::vector<std::uint64_t> ends() const;
  // Whole steps of which we can be sure: each optimizer was called twice and each parameter updated, or the program
  // went on for kPatience calls without that; and what backward passes and updates do came again, or differed kPatience
  // times. Fewer than before where a rarer optimizer shows late.
  std::uint64_t whole_steps() const { return whole_; }

 private:
  struct Call {
    std::uint64_t end_op = 0;
    std::uint32_t optimizer = 0;
  };
  struct Optimizer {
    std::uint64_t calls = 0;
    std::uint64_t newest = 0;      // its newest call: how many there had been of all
    std::uint64_t parameters = 0;  // written in the newest
    std::uint64_t hash = 0;        // of the updates of the newest
  };
  struct Parameter {
    bool followed = false;
    bool updated = false;
    bool waits = false;             // is in waiting_
    std::uint64_t first = 0;        // used first: how many runs of updates had begun
    std::vector<std::uint32_t> of;  // optimizers that wrote it
  };
  struct Run {  // of updates
    bool open = false;
    bool counted = false;  // as a call
    std::uint64_t last_op = 0;
    std::uint64_t hash = 0;
    std::vector<std::uint64_t> parameters;
  };
  struct Work {  // of backward passes and updates, from one call to the next
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
  std::vector<std::uint64_t> waiting_;  // parameters used in several calls and not updated
  std::vector<Optimizer> optimizers_;
  std::vector<Call> calls_;
  std::uint64_t call_count_ = 0;
  std::uint64_t runs_ = 0;  // begun
  Run run_;
  std::uint64_t work_hash_ = 0;
  std::vector<Work> work_;  // while not sure
  bool in_midst_ = false;
  bool any_backward_ = false;
  bool sure_ = false;
  std::uint64_t whole_ = 0;
};

}  // namespace ullage::trace
