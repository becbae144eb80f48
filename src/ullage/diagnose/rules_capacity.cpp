// SPDX-License-Identifier: Apache-2.0

// Causes: the device is too small for one request, for the sum of requests, or for what is live already.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <array>

namespace ullage::diagnose {
namespace {

using trace::Teller;

constexpr Bytes kGarbage = 64_GiB * 1024;  // requests this large are left to the rule garbage_size

// On HIP with nothing allocated: an APU or its runtime may show a part of the host's memory as the card's capacity.
bool capacity_is_doubtful(const Evidence& evidence) {
  return evidence.told_by(Teller::Hip) && evidence.facts.allocated.value_or(1_B) == Bytes{};
}

std::optional<Finding> single_request_too_big(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (!facts.requested || *facts.requested >= kGarbage) return std::nullopt;
  const std::string asked = to_string(*facts.requested);
  // Where more is free than the device has, its size is no limit: host and device share one memory.
  if (evidence.has_more_free_than_capacity()) {
    if (*facts.requested <= *facts.free) return std::nullopt;
    return Finding{
        0.5, {fmt::format("one request of {} is more than all that is free ({})", asked, to_string(*facts.free))}};
  }
  if (facts.capacity && *facts.requested > *facts.capacity) {
    return Finding{
        capacity_is_doubtful(evidence) ? 0.45 : 0.93,
        {fmt::format("one request of {} is more than the whole device has ({})", asked, to_string(*facts.capacity))}};
  }
  const std::optional<Bytes> most = sum(facts.reserved, facts.free);
  if (evidence.consistent && most && *facts.requested > *most && facts.allocated.value_or(Bytes{}) > Bytes{}) {
    return Finding{0.4,
                   {fmt::format("one request of {} is more than this process could get if it held nothing else: {}",
                                asked, to_string(*most))}};
  }
  // Few devices have that much free, and the message does not state this one's size.
  const bool of_device = evidence.told_by_pool() || evidence.told_by(Teller::CudaDriver);
  if (!facts.capacity && of_device && *facts.requested >= 32_GiB) {
    return Finding{0.45, {fmt::format("one request of {}: few devices have that much free in one piece", asked)}};
  }
  // A single request of this size seldom fits even a large machine.
  if (evidence.told_by(Teller::Cpu) && *facts.requested >= 16_GiB) {
    return Finding{0.5, {fmt::format("one request of {} of host memory in one piece", asked)}};
  }
  if (evidence.history && *facts.requested >= 1_GiB && *facts.requested >= evidence.history->reserved_peak) {
    return Finding{0.5,
                   {fmt::format("one request of {} is as large as everything the pool ever held ({})", asked,
                                to_string(evidence.history->reserved_peak))}};
  }
  return std::nullopt;
}

// XLA plans memory when it compiles a program, so its message says how much the whole program needs.
std::optional<Finding> program_too_big(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (facts.requested || !facts.allocated || !facts.capacity || *facts.allocated <= *facts.capacity)
    return std::nullopt;
  return Finding{0.7,
                 {fmt::format("the compiled program needs {}, and the device has {}", to_string(*facts.allocated),
                              to_string(*facts.capacity))}};
}

std::optional<Finding> too_big_for_device(const Evidence& evidence) {
  if (evidence.told_by(Teller::Jax)) {
    if (auto found = program_too_big(evidence)) return found;
  }
  const Facts& facts = evidence.facts;
  if (!evidence.consistent || !facts.requested || !facts.allocated || !evidence.ceiling) return std::nullopt;
  const std::optional<Bytes> both = sum(facts.allocated, facts.requested);
  if (*facts.requested > *evidence.ceiling || !both || *both <= *evidence.ceiling) return std::nullopt;
  return Finding{0.5,
                 {fmt::format("{} are live and {} more were asked for: together {}, above the {} that there are",
                              to_string(*facts.allocated), to_string(*facts.requested), to_string(*both),
                              to_string(*evidence.ceiling)),
                  "no order of blocks and no other setting of the pool would hold both"}};
}

// Returns the confidence by the share of the device that is live tensors. It is never above one half, because a message
// cannot show whether tensors are needed or kept by mistake.
double confidence_of_share(double live_share) {
  if (live_share >= 0.85) return 0.5;
  if (live_share >= 0.7) return 0.45;
  return live_share >= 0.4 ? 0.4 : 0.3;
}

std::optional<Finding> full_without_figures(const Evidence& evidence) {
  const trace::OutOfMemory& message = *evidence.message;
  switch (message.teller) {
    case Teller::CudaDriver: {
      if (message.text.find("THCStorage") != std::string::npos) {
        return Finding{0.45,
                       {"torch 0.1 to 0.4 asked for memory of a tensor (THCStorage); the message has no figures"}};
      }
      if (evidence.told_beside_the_pool()) {
        return Finding{0.3, {"PyTorch's pool states figures when it is refused: this was a call beside it"}};
      }
      return Finding{0.35, {"the message has no figures; a full device is the commonest reason"}};
    }
    case Teller::Cublas:
    case Teller::Cudnn:
    case Teller::Cusolver:
    case Teller::Cusparse:
    case Teller::Cufft:
    case Teller::Magma:
      return Finding{0.25, {"a full device is the commonest reason why such a library gets no memory"}};
    case Teller::Other:
      if (message.form.starts_with("metal-resources")) return std::nullopt;
      if (evidence.leaves_open_whose_memory() && !evidence.names_a_device()) {
        return Finding{0.25, {"the words do not say whose memory it was"}};
      }
      [[fallthrough]];
    case Teller::TensorFlow:
    case Teller::Jax: {
      std::string why =
          "the message names a request and no other figure; a working set too large is the commonest reason";
      return Finding{0.4, {std::move(why)}};
    }
    case Teller::Cuda:
    case Teller::CudaMallocAsync:
    case Teller::Hip:
    case Teller::Xpu:
    case Teller::Npu:
    case Teller::Mps:
      return Finding{
          0.35,
          {evidence.facts.requested ? "the message does not say how much is live; a full device is the commonest reason"
                                    : "the message has lost its figures; a full device is the commonest reason"}};
    default:
      return std::nullopt;
  }
}

std::optional<Finding> full_by_summary(const Evidence& evidence) {
  const std::uint64_t ooms = evidence.summary->ooms.value_or(0);
  const std::uint64_t retries = evidence.summary->retries.value_or(0);
  if (ooms == 0 && retries == 0) return std::nullopt;
  const double live = share(evidence.facts.allocated, evidence.facts.reserved);
  return Finding{live >= 0.7 ? 0.5 : 0.3,
                 {fmt::format("{} request{} failed and {} had to wait until cached memory was given back", ooms,
                              ooms == 1 ? "" : "s", retries)}};
}

std::optional<Finding> device_full(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (evidence.summary) return full_by_summary(evidence);
  if (!evidence.message || evidence.is_on_chip()) return std::nullopt;
  if (facts.requested.value_or(Bytes{}) >= kGarbage) return std::nullopt;
  if (!facts.allocated || (evidence.told_by(Teller::Other) && !evidence.ceiling)) return full_without_figures(evidence);
  if (*facts.allocated == Bytes{} || !evidence.ceiling) return std::nullopt;
  if (!facts.requested && share(facts.allocated, evidence.ceiling) < 0.7) return std::nullopt;
  const Bytes requested = facts.requested.value_or(Bytes{});
  if (requested > *evidence.ceiling) return std::nullopt;
  if (const auto both = sum(facts.allocated, requested); !both || *both > *evidence.ceiling) return std::nullopt;
  // If the request would have fitted into what was free, by more than rounding explains, the cause is another one:
  // driver_refused() (rules_outside.cpp).
  if (facts.requested && facts.free && !facts.allowed &&
      saturating_sub(*facts.free, requested) >= 2_MiB + evidence.precision * 2) {
    return std::nullopt;
  }
  const double live = share(facts.allocated, evidence.ceiling);
  std::vector<std::string> why{fmt::format("{} of {} ({:.0f} %) are live tensors", to_string(*facts.allocated),
                                           to_string(*evidence.ceiling), 100 * live)};
  if (*evidence.ceiling < 4200_MiB) {
    why.push_back(
        fmt::format("{} is little: the CUDA context alone takes 0.3 to 0.6 GiB of it", to_string(*evidence.ceiling)));
  }
  return Finding{confidence_of_share(live), std::move(why)};
}

constexpr std::array kCapacityRules = {
    CauseRule{"single_request_too_big", "One request alone asks for more than there is", &single_request_too_big},
    CauseRule{"too_big_for_device", "What is live and what was asked for are more than the device has",
              &too_big_for_device},
    CauseRule{"device_full", "The model and its batch fill the device", &device_full},
};

}  // namespace

std::span<const CauseRule> capacity_rules() { return kCapacityRules; }

}  // namespace ullage::diagnose
