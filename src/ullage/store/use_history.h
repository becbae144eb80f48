// SPDX-License-Identifier: Apache-2.0
#pragma once

// Predicts when a storage will be used again. Programs repeat themselves: a step runs the same sequence of ops as the
// step before. So each op is matched with an earlier occurrence of it, its twin. If a storage of the twin was next
// used, or freed, n ops later, the same is expected of this op's storage in n ops:
//
//   earlier   ... conv  relu  conv  ...  conv_backward ...      the relu's output was used 40 ops later
//                        ^twin
//   now       ... conv  relu                                    so this relu's output will be used in 40 ops
//
// The twin of the next op is expected to be the op after this twin. That holds for other sizes too (a batch of longer
// sentences), because the sequence stays the same. If another op comes (an evaluation in between), the place is found
// again by the last kContext ops. First ops on equal shapes are looked for, else the ops alone. Neither step borders
// nor names are needed: a parameter's next use may well lie in the next step.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/store/op_signature.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace ullage::store {

// Ops are numbered from 1 on as they run, so OpId is the pager's clock. For ops and uses, zero means none.
using UseId = Id<struct UseTag>;

class UseHistory final {
 public:
  // `most_ops`: most ops that are remembered. A period longer than half of that is not recognized.
  explicit UseHistory(std::size_t most_ops = 1u << 15) : most_ops_(most_ops) {}

  // Adds an op that ran at `now`. Add its uses afterwards, in an order that is always the same for the same op: what it
  // read, what it made.
  OpId add_op(OpSignature signature, Seconds now);
  // Adds a use, by the op added last, of a storage whose use before that was `before`. Returns its id.
  UseId add_use(UseId before);
  // Notes that the storage whose last use was `last` was freed.
  void add_death(UseId last);

  // Predicts at which op the storage whose last use was `last` is used again or freed (`dies`). Returns nothing if the
  // op of that use has no twin, or if the twin has fewer uses. Also if nothing has happened to the twin's storage
  // since, or if the op or its twin is forgotten by now.
  struct Next {
    OpId at;
    bool dies = false;
  };
  std::optional<Next> next(UseId last) const;

  // The number that the next op will get.
  OpId now() const { return {first_op_ + ops_.size()}; }
  // Predicts how long the next `ahead` ops take: as long as those after the twin of the newest op took. Returns nothing
  // if that op has no twin, or if fewer than `ahead` ops came after the twin.
  std::optional<Seconds> time_until(std::uint64_t ahead) const;

 private:
  static constexpr std::size_t kContext = 6;  // ops in a row that must be equal to find the place again

  struct Op {
    std::uint64_t kind = 0;
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
  OpId find_twin(OpSignature signature);
  void forget();

  const std::size_t most_ops_;
  std::deque<Op> ops_;
  std::deque<Use> uses_;
  std::uint64_t first_op_ = 1;   // index of ops_.front()
  std::uint64_t first_use_ = 1;  // id of uses_.front()
  // The last kContext ops. A map has the latest op at which such a row of ops ended, by the row's hash.
  struct Context {
    std::array<std::uint64_t, kContext> last{};
    std::unordered_map<std::uint64_t, OpId> ends;
    OpId add(std::uint64_t hash, OpId self);
  };
  Context shapes_, kinds_;
};

}  // namespace ullage::store
