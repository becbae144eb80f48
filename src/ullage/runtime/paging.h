// SPDX-License-Identifier: Apache-2.0
#pragma once

// Connects torch's ops and saved tensors with the pager. Brings the inputs of an op back and pins them until the op
// ends, and tells the pager which storages autograd keeps. If an input cannot be brought back, begin() and unpacking()
// throw c10::OutOfMemoryError.

#include "ullage/runtime/ops/op_call.h"
#include "ullage/runtime/ops/saved_tensors.h"
#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/runtime/pool/card_work.h"
#include "ullage/runtime/pool/pool.h"
#include "ullage/store/pager.h"

namespace ullage::runtime {

class Paging final : public OpListener, public SavedListener {
 public:
  // All must live for ever. `work`: the card's; null on the CPU.
  Paging(store::Pager& pager, Pool& pool, const PlanFollower& plan, CardWork* work)
      : pager_(pager), pool_(pool), plan_(plan), work_(work) {}

  bool fits(const OpCall& call) override;
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  void saved(const StorageUse& use, SavedKind kind) override;
  void unpacking(const StorageUse& use) override;
  void released(Address begin) noexcept override;

 private:
  void copy_storage(OpCall& call);

  store::Pager& pager_;
  Pool& pool_;
  const PlanFollower& plan_;
  CardWork* const work_;
};

}  // namespace ullage::runtime
