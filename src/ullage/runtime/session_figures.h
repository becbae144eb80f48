// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects the figures that a session reports of its process: to the recording, and to the process's ledger slot.

#include "ullage/runtime/pool/budgeted_device.h"

#include "ullage/store/budget.h"
#include "ullage/store/ledger.h"
#include "ullage/store/pager.h"
#include "ullage/trace/take/take.h"

#include <string>

namespace ullage::runtime {

class SessionFigures final {
 public:
  // All must live for ever. `outside_expected`: bytes reserved at the start for the outside. `slot` null: nobody reads
  // figures.
  SessionFigures(BudgetedDevice& device, const store::Budget& budget, const store::Store& store, Bytes outside_expected,
                 store::LedgerSlot* slot);

  // The figures of the process up to now.
  trace::ProcessFigures now() const;

  // Write into the slot that a request was refused, or that the process ended. `least`: the budget that would have
  // served the request.
  void refused(const store::Shortage& shortage, const std::string& op, const std::string& message, Bytes least);
  void ended();

  // In a child made by fork: the figures stay the parent's. The child's refusals go to `slot`.
  void leave_to_parent(store::LedgerSlot* slot) { figures_ = nullptr, slot_ = slot; }

  // slot(): where refusals go. figures(): where figures go; null in a child made by fork. Null: nowhere.
  store::LedgerSlot* slot() const { return slot_; }
  store::LedgerSlot* figures() const { return figures_; }

 private:
  BudgetedDevice& device_;
  const store::Budget& budget_;
  const store::Store& store_;
  const Bytes outside_expected_, peak_at_start_;
  store::LedgerSlot* slot_;
  store::LedgerSlot* figures_;
};

}  // namespace ullage::runtime
