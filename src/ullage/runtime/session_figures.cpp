// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/session_figures.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace ullage::runtime {

SessionFigures::SessionFigures(BudgetedDevice& device, const store::Budget& budget, const store::Store& store,
                               Bytes outside_expected, store::LedgerSlot* slot)
    : device_(device),
      budget_(budget),
      store_(store),
      outside_expected_(outside_expected),
      peak_at_start_(device.held_peak()),
      slot_(slot),
      figures_(slot) {}

trace::ProcessFigures SessionFigures::now() const {
  const store::StoreCounts counts = store_.counts();
  trace::ProcessFigures figures;
  figures.peak = device_.held_peak();
  figures.outside_peak = budget_.outside_peak();
  if (figures.peak > peak_at_start_) {  // the peak may have come and gone between two looks of the watch
    figures.outside_peak = std::max(figures.outside_peak, saturating_sub(figures.peak, counts.resident_peak));
  }
  figures.outside_expected = outside_expected_;
  figures.pool_live_peak = counts.live_peak;
  figures.pool_resident_peak = counts.resident_peak;
  figures.threads = static_cast<std::uint32_t>(at::get_num_threads());
  return figures;
}

void SessionFigures::refused(const store::Shortage& shortage, const std::string& op, const std::string& message,
                             Bytes least) {
  if (slot_ == nullptr) return;
  slot_->last_request.store(shortage.refusal.requested.count);
  slot_->last_op.set(op);
  slot_->message.set(message);
  slot_->refused_least.store(least.count);
  slot_->refused.fetch_add(1);
}

void SessionFigures::ended() {
  if (slot_ != nullptr) slot_->ended.store(1);
}

}  // namespace ullage::runtime
