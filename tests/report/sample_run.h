// SPDX-License-Identifier: Apache-2.0
#pragma once

// A run for tests: the ledger's page is filled by hand, and the run has an end.

#include "ullage/report/run_report.h"

#include <memory>
#include <string>
#include <utility>

namespace ullage::report {

struct SampleRun {
  std::unique_ptr<store::LedgerPage> page = std::make_unique<store::LedgerPage>();
  ProcessEnd end;

  SampleRun() {
    page->budget.store((2_GiB).count);
    end.command = {"ullage-dcgan", "--batch", "8"};
    end.target = {"dcgan", "--batch", "8"};
    end.peak = 1900_MiB;
    end.wall = Seconds{24.5};
    end.oom_kills = OomKills::Unchanged;
  }

  // A process of 1900 MiB, 140 MiB of it outside the pool, with twelve steps of 2 s.
  store::LedgerSlot& attach(std::size_t at = 0) {
    store::LedgerSlot& slot = page->slots[at];
    slot.pid.store(100 + static_cast<int>(at));
    slot.rss_peak.store((1900_MiB).count);
    slot.outside_expected.store((145_MiB).count);
    slot.outside_at_peak.store((140_MiB).count);
    slot.pool_live_peak.store((1750_MiB).count);
    slot.pool_resident_peak.store((1760_MiB).count);
    slot.threads.store(2);
    slot.steps.store(12);
    for (std::size_t n = 1; n <= 12; ++n) slot.step_us[n].store(2'000'000);
    return slot;
  }

  // Adds that this process spilled 3 GiB and restored 2.5 GiB. The program waited for 1 s of the 4 s of moving.
  store::LedgerSlot& moves(store::LedgerSlot& slot) {
    slot.pool_live_peak.store((2600_MiB).count);
    slot.spilled.store((3_GiB).count);
    slot.restored.store((2560_MiB).count);
    slot.spill_wait_us.store(1'000'000);
    slot.spill_background_us.store(3'000'000);
    slot.spilled_peak.store((900_MiB).count);
    slot.saved_writes.store((700_MiB).count);
    slot.page_faults_healed.store(4);
    slot.unmovable.store((12_MiB).count);
    slot.files_let_go.store((5_MiB).count);
    slot.least_budget.store((812_MiB).count);
    return slot;
  }

  // Adds that this process followed a plan from step 4 on. The plan costs 0.12 s a step, beside steps of 2 s.
  store::LedgerSlot& plans(store::LedgerSlot& slot) {
    slot.plans.store(1);
    slot.plan_adopted_at_step.store(4);
    slot.plan_peak.store((1045_MiB).count);
    slot.plan_peak_seen.store((1045_MiB).count);
    slot.plan_step_us.store(2'000'000);
    slot.plan_overhead_us.store(120'000);
    slot.plan_bound_us.store(80'000);
    slot.plan_recomputes.store(41);
    slot.plan_spills.store(12);
    slot.plan_steps.store(8);
    slot.recomputed_ops.store(41 * 8);
    slot.recompute_us.store(960'000);
    slot.tape_peak.store((1_MiB).count);
    return slot;
  }

  // As attach(), but the figures are those of a card. The process holds more of the machine's memory besides.
  store::LedgerSlot& attach_on_card(std::uint64_t number) {
    page->card.store(number + 1);
    page->host_memory.store((8_GiB).count);
    end.peak = 5_GiB;
    return attach();
  }

  void exits(int code) { end.exit_code = code; }
  void dies_of(int signal) {
    end.signal = signal;
    end.exit_code = 128 + signal;
  }
  RunReport report() const { return summarize(*page, end); }
};

}  // namespace ullage::report
