// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a session says of itself: to the recording, and to the slot of the ledger that is the process's.

#include "ullage/runtime/pool/budgeted_device.h"

#include "ullage/store/budget.h"
#include "ullage/store/ledger.h"
#include "ullage/store/pager.h"
#include "ullage/trace/take/take.h"

#include <string>

namespace ullage::runtime {

class SessionFigures final {
 public:
  // All must live for ever. `outside_expected`: what was set aside at the start for what stands outside the pool.
  // `slot` null: nobody reads figures.
  SessionFigures(BudgetedDevice& device, const store::Budget& budget, const store::Store& store, Bytes outside_expected,
                 store::LedgerSlot* slot);

  // Of the process, until now.
  trace::ProcessFigures now() const;

  // A request was refused, or the process ends.
  void refused(const store::Shortage& shortage, const std::string& op, const std::string& message);
  void ended();

  // In a child by fork: the figures are the parent's. `slot` is where the child says that it was refused something.
  void leave_to_parent(store::LedgerSlot* slot) { figures_ = nullptr, slot_ = slot; }

  // Where refusals go; and where a process that is no child has its figures. Null: nowhere.
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
