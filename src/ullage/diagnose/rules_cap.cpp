// SPDX-License-Identifier: Apache-2.0

// Causes: a limit below the device's size. Somebody set it: a fraction, a watermark, a heap, an arena, an engine's
// share of the card, or a budget of Ullage. Or it is the largest block that a driver makes.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <array>

namespace ullage::diagnose {
namespace {

using trace::Limit;
using trace::Teller;

std::optional<Finding> past_metal_cap(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  const std::optional<Bytes> held = sum(facts.allocated, evidence.other_allocations.value_or(Bytes{}));
  const std::optional<Bytes> wanted = sum(held, facts.requested);
  if (!held || !wanted || !facts.allowed || *facts.requested > *facts.allowed) return std::nullopt;
  // The figures are rounded to the printed digits. If the sum is below the limit by more than rounding explains, the
  // limit did not refuse.
  if (saturating_sub(*facts.allowed, *wanted) > evidence.precision * 4) return std::nullopt;
  return Finding{0.45,
                 {fmt::format("{} held by PyTorch and {} by others in Metal, {} asked for: past the {} allowed",
                              to_string(*facts.allocated), to_string(evidence.other_allocations.value_or(Bytes{})),
                              to_string(*facts.requested), to_string(*facts.allowed)),
                  "the limit is a share of the memory the system recommends, set when torch is imported"}};
}

std::optional<Finding> memory_fraction_cap(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (evidence.names_limit(Limit::Heap)) {
    return Finding{0.6, {"the runtime limits its own heap: the machine may have plenty"}};
  }
  if (evidence.names_limit(Limit::Arena)) {
    return Finding{0.8, {"the allocator reached the limit that it was given: the device may have plenty"}};
  }
  if (evidence.message && evidence.message->form == "cuda-rmm-pool") {
    return Finding{0.4, {"RMM's pool had reached its greatest size: the device may have more"}};
  }
  if (evidence.names_limit(Limit::Program)) {
    return Finding{0.75, {"the program limits itself: the machine may have plenty"}};
  }
  if (!facts.allowed || !facts.requested) return std::nullopt;
  if (evidence.told_by(Teller::Mps)) return past_metal_cap(evidence);
  if (!evidence.told_by_pool() && !evidence.told_by(Teller::CudaMallocAsync)) return std::nullopt;
  if (facts.capacity && *facts.allowed >= *facts.capacity) return std::nullopt;
  const std::optional<Bytes> held = facts.reserved ? facts.reserved : facts.allocated;
  const std::optional<Bytes> wanted = sum(held, facts.requested);
  if (!wanted) return std::nullopt;
  // The figures are rounded to the printed digits, so the true sum may be this much larger.
  const Bytes rounding = evidence.precision * 4;
  const bool over = sum(wanted, rounding).value_or(*wanted) > *facts.allowed;
  const bool room = facts.free && *facts.free >= *facts.requested;
  std::vector<std::string> why{fmt::format("this process may use {}, it held {} and asked for {}",
                                           to_string(*facts.allowed), to_string(*held), to_string(*facts.requested))};
  if (room) why.push_back(fmt::format("{} of the device were free", to_string(*facts.free)));
  if (!over) why.push_back("by these figures the request would still have fitted under the limit");
  return Finding{over ? (room ? 0.95 : 0.75) : 0.35, std::move(why)};
}

std::optional<Finding> buffer_limit(const Evidence& evidence) {
  if (!evidence.message) return std::nullopt;
  if (evidence.message->form == "metal-resources") {
    return Finding{0.9, {"Metal limits the number of buffers, cached ones included: how much is free does not matter"}};
  }
  if (evidence.names_limit(Limit::Buffer)) {
    return Finding{0.9, {"the words name a limit of one buffer or binding: how much is free does not matter"}};
  }
  // Level Zero has the same words for a full device and for one allocation of 4 GiB or more.
  if (evidence.message->form == "xpu-driver") {
    return Finding{0.4, {"drivers of Arc cards refuse one allocation of 4 GiB or more with the same words"}};
  }
  if (!evidence.facts.requested) return std::nullopt;
  const Facts& facts = evidence.facts;
  const std::string asked = to_string(*facts.requested);
  if (evidence.message->form == "vulkan" && *facts.requested >= 4_GiB) {
    return Finding{0.5,
                   {fmt::format("{} in one piece: most Vulkan drivers make none above 2 or 4 GiB "
                                "(maxMemoryAllocationSize)",
                                asked)}};
  }
  if (evidence.told_by(Teller::Metal)) {
    return Finding{0.95,
                   {fmt::format("Metal makes no buffer of {}: one block has a limit, however much is free", asked)}};
  }
  if (!evidence.told_by(Teller::Xpu)) return std::nullopt;
  if (evidence.message->largest_block || evidence.message->text.find("larger than 4GB") != std::string::npos) {
    return Finding{0.97, {fmt::format("{} in one block, and the driver makes none above 4 GiB", asked)}};
  }
  if (facts.capacity && *facts.requested > *facts.capacity) return std::nullopt;
  const bool nothing_held = facts.allocated == Bytes{};
  const bool of_old_driver = !facts.free;  // assumed: torch up to 2.8 prints no free figure for XPU
  if (*facts.requested >= 4_GiB) {
    return Finding{of_old_driver ? 0.8 : 0.4,
                   {fmt::format("{} in one block: drivers of Arc cards make none of 4 GiB or more", asked)}};
  }
  if (!nothing_held || *facts.requested < 1_GiB) return std::nullopt;
  return Finding{0.6,
                 {fmt::format("{} of {} were refused while nothing was allocated: under WSL2 one block may have about "
                              "1 GiB",
                              asked, facts.capacity ? to_string(*facts.capacity) : std::string("the device"))}};
}

// The engine has taken its share of the card already. Anything else must fit into the rest.
std::optional<Finding> beside_the_share(const Evidence& evidence) {
  const bool engine = evidence.spoken_by(Tool::Vllm) || evidence.spoken_by(Tool::Sglang);
  if (!engine || !evidence.message) return std::nullopt;
  if (evidence.message->form == "sglang-startup") {
    return Finding{0.6, {"what the engine takes at its start leaves no room for the KV cache"}};
  }
  const bool device = evidence.told_by(Teller::Cuda) || evidence.told_by(Teller::CudaDriver) ||
                      evidence.told_by(Teller::Hip) || evidence.told_by(Teller::CudaMallocAsync) ||
                      evidence.told_by(Teller::Npu) || evidence.told_by(Teller::Xpu);
  if (!device || evidence.signs.has(Sign::Loading)) return std::nullopt;
  return Finding{0.48,
                 {"the engine takes a stated share of the card for itself; graphs, sampling and whoever else is on the "
                  "card get the rest"}};
}

std::optional<Finding> utilization_share(const Evidence& evidence) {
  if (!evidence.told_by(Teller::Vllm)) return beside_the_share(evidence);
  const Facts& facts = evidence.facts;
  // The cache is what the engine's share has left beside weights and activations, not the share itself.
  if (evidence.message->form.starts_with("vllm-cache") && facts.requested && facts.free) {
    return Finding{0.4,
                   {fmt::format("the longest sequence needs {} of KV cache, and the engine's share leaves {} for it",
                                to_string(*facts.requested), to_string(*facts.free))}};
  }
  if (!facts.requested || !facts.free) {
    return Finding{0.3, {"the engine reserves a share of the device at its start and did not find it free"}};
  }
  return Finding{0.4,
                 {fmt::format("the engine wants {} from the start, and {} were free", to_string(*facts.requested),
                              to_string(*facts.free))}};
}

// A pager can evict all but what the op in flight was given and makes. If that is too much, only a larger budget helps.
std::optional<Finding> op_needs_too_much(const History& history) {
  if (!history.take || !history.failed()) return std::nullopt;
  if (!history.told->need) {
    return Finding{0.4, {fmt::format("{} were refused outside of any op", to_string(history.oom->requested))}};
  }
  const Need& need = *history.told->need;
  std::vector<std::string> why{
      fmt::format("{} needs {} at once: {} for its inputs and what it had made, and the {} asked for", need.op,
                  to_string(need.bytes), to_string(saturating_sub(need.bytes, history.oom->requested)),
                  to_string(history.oom->requested))};
  const Bytes most = history.take->process.pool_resident_peak;
  if (most == Bytes{}) return Finding{0.6, std::move(why)};
  why.push_back(fmt::format("the pool never held more than {}", to_string(most)));
  if (need.bytes >= most / 10 * 9) return Finding{0.92, std::move(why)};
  why.push_back("the rest could not be moved out: check whether the disk of --spill is full");
  return Finding{0.5, std::move(why)};
}

std::optional<Finding> budget_too_small(const Evidence& evidence) {
  if (evidence.history) return op_needs_too_much(*evidence.history);
  if (!evidence.told_by(Teller::Ullage)) return std::nullopt;
  if (evidence.facts.needed) {
    return Finding{0.95,
                   {fmt::format("a budget of {} would have served the request", to_string(*evidence.facts.needed))}};
  }
  return Finding{0.9, {"Ullage refused a request that could not be served inside the budget that was stated"}};
}

constexpr std::array kCapRules = {
    CauseRule{"memory_fraction_cap", "A limit set for this process was reached", &memory_fraction_cap},
    CauseRule{"buffer_limit", "One block is larger than the driver makes any", &buffer_limit},
    CauseRule{"utilization_share", "The share that the engine reserves at its start is not free", &utilization_share},
    CauseRule{"budget_too_small", "The budget stated to Ullage is too small for one request", &budget_too_small},
};

}  // namespace

std::span<const CauseRule> cap_rules() { return kCapRules; }

}  // namespace ullage::diagnose
