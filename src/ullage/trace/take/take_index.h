// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out once what many analyses need to know about a take: which op runs inside which, which op each event lies in,
// and which role each storage has.

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <vector>

namespace ullage::trace {

struct TakeIndex {
  // `take` must outlive the index. ContractError if parts of the take do not fit together.
  explicit TakeIndex(const Take& take);

  const Take& take;
  // Index: OpId. The outermost op on the same thread that the op runs inside; the op itself if there is none.
  std::vector<OpId> root;
  // Index: EventId. The op that began last, among those that run at the event on any thread; kNoOp if none runs.
  std::vector<OpId> open;

  // Index: StorageId.
  std::vector<bool> leaf;           // a leaf that requires grad: Role::Parameter
  std::vector<bool> gradient;       // Role::Gradient
  std::vector<bool> followed;       // a leaf that an op read outside backward while autograd was recording
  std::vector<std::uint32_t> role;  // of a leaf: index into take.roles, the newest entry with a name if there is one

  // Index of the op at which the loading ends: the first one for which autograd saves something. If autograd saves
  // nothing, it is the first op that reads a leaf and something else; 0 if there is none.
  std::size_t first_forward = 0;

  const OpDetail& detail(OpId op) const { return take.details[op.value]; }
  // The op that allocated the storage, else the op that ran on another thread at that moment, else kNoOp.
  OpId maker(StorageId storage) const;
  // Whether the op writes a leaf that autograd followed, outside backward and after the loading.
  bool updates(OpId op) const;
};

}  // namespace ullage::trace
