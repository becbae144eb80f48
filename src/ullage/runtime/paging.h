// SPDX-License-Identifier: Apache-2.0
#pragma once

// Joins torch's ops and saved tensors with the pager: what an op reads is brought back and pinned, what autograd saves
// is known as such.

#include "ullage/runtime/ops/op_call.h"
#include "ullage/runtime/ops/saved_tensors.h"
#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/runtime/pool/card_work.h"
#include "ullage/runtime/pool/pool.h"
#include "ullage/store/pager.h"

namespace ullage::runtime {

class Paging final : public OpListener, public SavedListener {
 public:
  // All must live for ever. `work`: of a card; else null.
  Paging(store::Pager& pager, Pool& pool, const PlanFollower& plan, CardWork* work)
      : pager_(pager), pool_(pool), plan_(plan), work_(work) {}

  bool fits(const OpCall& call) override;
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  void saved(const StorageUse& use, SavedKind kind) override;
  void unpacking(const StorageUse& use) override;
  void released(Address begin) noexcept override;

 private:
  store::Pager& pager_;
  Pool& pool_;
  const PlanFollower& plan_;
  CardWork* const work_;
};

}  // namespace ullage::runtime
