// SPDX-License-Identifier: Apache-2.0
#pragma once

// When will this storage be used again? Programs repeat themselves: the sequence of ops of one step is that of the step
// before. So each op of the present is matched with an earlier occurrence of it, its twin, and what the twin's storages
// met next, and how many ops later, is what this op's storages will meet:
//
//   earlier   ... conv  relu  conv  ...  conv_backward ...      the relu's output was used 40 ops later
//                        ^twin
//   now       ... conv  relu                                    so this relu's output will be used in 40 ops
//
// Twins follow each other: the op after the twin is expected next. Where it is another one (an evaluation in between, a
// short last batch), the place is found again by the last few ops. No step borders and no names are needed; a
// parameter's next use may well lie in the next step.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace ullage::store {

// Ops are numbered as they run, from 1 on: OpId is the pager's clock. Zero: none, for uses too.
using UseId = Id<struct UseTag>;

class UseHistory final {
 public:
  // `most_ops`: how many are remembered at most; a period longer than half of that is not recognized.
  explicit UseHistory(std::size_t most_ops = 1u << 15) : most_ops_(most_ops) {}

  // An op was run. `signature`: equal for the same op on equal shapes. Its uses follow, in an order that the same op
  // always has: what it read, what it made.
  OpId add_op(std::uint64_t signature, Seconds now);
  // The op added last uses a storage whose use before that was `before`.
  UseId add_use(UseId before);
  // The storage whose last use was `last` is gone.
  void add_death(UseId last);

  // The op at which the storage with this last use is expected to be used again or to die; nothing when its twin is not
  // known, or met nothing yet.
  struct Next {
    OpId at;
    bool dies = false;
  };
  std::optional<Next> next(UseId last) const;

  OpId now() const { return {first_op_ + ops_.size()}; }
  // How long it took from the twin of the newest op to the op `ahead` ops behind it; nothing without a twin.
  std::optional<Seconds> time_until(std::uint64_t ahead) const;

 private:
  static constexpr std::size_t kContext = 6;  // ops that must agree to find the place again

  struct Op {
    std::uint64_t signature = 0;
    std::uint64_t first_use = 0;
    OpId twin;  // zero: none
    Seconds at;
  };
  struct Use {
    OpId op;
    OpId next;  // zero: nothing yet
    bool died = false;
  };

  const Op* op(OpId index) const;
  const Use* use(UseId id) const;
  std::uint64_t uses_of(OpId index) const;
  OpId find_twin(std::uint64_t signature);
  void forget();

  const std::size_t most_ops_;
  std::deque<Op> ops_;
  std::deque<Use> uses_;
  std::uint64_t first_op_ = 1;   // index of ops_.front()
  std::uint64_t first_use_ = 1;  // id of uses_.front()
  std::array<std::uint64_t, kContext> last_signatures_{};
  std::unordered_map<std::uint64_t, OpId> by_context_;  // hash of kContext signatures: the latest op they ended at
};

}  // namespace ullage::store
