// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is asked of a take again and again, worked out once: which op is inside which, which op an event stands in, what
// role a storage has.

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <vector>

namespace ullage::trace {

struct TakeIndex {
  // `take` must outlive it. ContractError: parts of it that do not belong together.
  explicit TakeIndex(const Take& take);

  const Take& take;
  // Index: OpId. The outermost op of its thread that it runs inside of; itself where there is none.
  std::vector<OpId> root;
  // Index: EventId. The op begun last of those still running, on any thread; kNoOp outside all.
  std::vector<OpId> open;

  // Index: StorageId.
  std::vector<bool> leaf;           // requires grad: Role::Parameter
  std::vector<bool> gradient;       // Role::Gradient
  std::vector<bool> followed;       // a leaf that an op read outside backward, with autograd recording
  std::vector<std::uint32_t> role;  // of a leaf: index into take.roles

  // Ordinal of the op at which the loading ends: the first one that autograd keeps something for; where it keeps
  // nothing at all, the first that reads a leaf and something else.
  std::size_t first_forward = 0;

  const OpDetail& detail(OpId op) const { return take.details[op.value]; }
  // The op that allocated a storage, or stood open on another thread while it was; kNoOp: none.
  OpId maker(StorageId storage) const;
  // Outside backward, after the loading, writes a parameter that autograd followed once.
  bool updates(OpId op) const;
};

}  // namespace ullage::trace
