// SPDX-License-Identifier: Apache-2.0
#include "torch_program/rehearsal.h"

#include "torch_program/run_parts.h"

#include <string>

namespace ullage::torch_program {
namespace {

// "batch 2", "width 36, height 40"
std::string shown(const std::vector<Knob>& knobs) {
  std::string text;
  for (const Knob& one : knobs) text += (text.empty() ? "" : ", ") + one.name + " " + std::to_string(one.value);
  return text;
}

}  // namespace

Result<bool> rehearse(const runtime::RehearsalOffer& offer, std::int64_t threads, program::Progress& progress,
                      const std::function<Status(const std::vector<Knob>& knobs)>& one) {
  const auto rehearsal = runtime::rehearsal(offer);
  if (rehearsal.takes.empty()) return false;
  set_threads(threads);
  for (const auto& knobs : rehearsal.takes) {
    progress.say("rehearsal: " + shown(knobs));
    const runtime::Take take(knobs);
    ULLAGE_TRY(one(knobs));
  }
  return true;
}

}  // namespace ullage::torch_program
