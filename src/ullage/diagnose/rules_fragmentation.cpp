// SPDX-License-Identifier: Apache-2.0

// Causes: the caching allocator holds enough bytes, but not in one piece, or not where they can be used.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

using trace::Teller;

// PyTorch gives back all it can to the device before it fails, so cached bytes in a message lie beside live blocks.
std::optional<Finding> in_message(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (!facts.requested || !facts.unallocated || !facts.reserved || *facts.unallocated == Bytes{}) return std::nullopt;
  if (facts.free && *facts.free >= *facts.requested) return std::nullopt;
  const double cached = share(facts.unallocated, facts.reserved);
  std::vector<std::string> why;
  if (*facts.unallocated >= *facts.requested) {
    why.push_back(fmt::format("{} are cached but not allocated, {} were asked for: enough, but in pieces",
                              to_string(*facts.unallocated), to_string(*facts.requested)));
    why.push_back("PyTorch gives back all it can before it fails: each of those pieces lies beside a live block");
    // vLLM and SGLang allocate one large cache at their start and always keep a few cached bytes beside it. There a
    // small share of cached bytes says little.
    const bool engine = evidence.spoken_by(Tool::Vllm) || evidence.spoken_by(Tool::Sglang);
    const double sure = cached >= 0.3    ? 0.8
                        : cached >= 0.15 ? 0.65
                        : cached >= 0.04 ? (engine && cached < 0.1 ? 0.3 : 0.5)
                        : cached >= 0.02 ? 0.25
                                         : 0.15;
    return Finding{sure, std::move(why)};
  }
  const std::optional<Bytes> with_free = sum(facts.unallocated, facts.free);
  if (!with_free || *with_free < *facts.requested) return std::nullopt;
  if (*facts.unallocated < *facts.requested / 10) return std::nullopt;
  why.push_back(fmt::format("{} cached and {} free would be {} in one piece, {} were asked for",
                            to_string(*facts.unallocated), to_string(*facts.free), to_string(*with_free),
                            to_string(*facts.requested)));
  return Finding{0.35, std::move(why)};
}

void say_pins(const PoolLayout& layout, std::vector<std::string>& why) {
  for (std::size_t i = 0; i < std::min<std::size_t>(layout.pins.size(), 2); ++i) {
    const Pin& pin = layout.pins[i];
    why.push_back(fmt::format(
        "{} in {} segment{} cannot be given back because {} of live blocks lie among them: {} by {}, the largest of {}",
        to_string(pin.pinned), pin.segments, pin.segments == 1 ? "" : "s", to_string(pin.live), to_string(pin.own),
        pin.owner, to_string(pin.largest)));
  }
}

std::optional<Finding> at_failure(const Evidence& evidence) {
  const History& history = *evidence.history;
  const Bytes asked = *evidence.facts.requested;
  if (!history.layout) return std::nullopt;
  const PoolLayout& layout = *history.layout;
  const Bytes cached = layout.usable + layout.stuck;
  if (cached < asked || layout.largest_hole >= asked + 1_MiB) return std::nullopt;
  std::vector<std::string> why{fmt::format("{} were cached and {} asked for, but the largest hole was {}",
                                           to_string(cached), to_string(asked), to_string(layout.largest_hole))};
  say_pins(layout, why);
  const double part = share(cached, history.moment.reserved);
  return Finding{part >= 0.1 ? 0.9 : 0.6, std::move(why)};
}

// For a recording without a failure. Free segments are no fragments: the pool uses them for the next request that fits,
// and gives them back before it fails. So only the holes beside live blocks count, those that the bar calls stuck.
std::optional<Finding> without_failure(const Evidence& evidence) {
  const History& history = *evidence.history;
  if (!history.recorded || !history.has_history || !history.layout) return std::nullopt;
  const PoolLayout& layout = *history.layout;
  const double part = share(layout.stuck, layout.reserved);
  if (part < 0.15 || layout.stuck < 64_MiB) return std::nullopt;
  std::vector<std::string> why{fmt::format(
      "{} of the {} reserved ({:.0f} %) are holes beside live blocks, the largest of {}; {} are free segments",
      to_string(layout.stuck), to_string(layout.reserved), 100 * part, to_string(layout.largest_hole),
      to_string(layout.usable))};
  say_pins(layout, why);
  return Finding{part >= 0.4 ? 0.7 : part >= 0.25 ? 0.55 : 0.35, std::move(why)};
}

// For a table without the row "Non-releasable memory", which separates pieces beside live blocks from free segments.
std::optional<Finding> unused_after_failure(const Evidence& evidence) {
  const double part = share(evidence.facts.unallocated, evidence.facts.reserved);
  if (evidence.summary->ooms.value_or(0) == 0 || part < 0.3) return std::nullopt;
  return Finding{
      0.45,
      {fmt::format("after a request had failed {} of the {} reserved were not allocated ({:.0f} %); what the "
                   "failing step freed on its way out counts in it",
                   to_string(*evidence.facts.unallocated), to_string(*evidence.facts.reserved), 100 * part)}};
}

std::optional<Finding> in_summary(const Evidence& evidence) {
  const trace::SummaryRow* stuck = evidence.summary->row("Non-releasable memory");
  if (!evidence.facts.reserved) return std::nullopt;
  if (!stuck || stuck->counts) return unused_after_failure(evidence);
  const Bytes held{stuck->cells[0].value};
  const double part = share(held, evidence.facts.reserved);
  if (part < 0.1 || held < 64_MiB) return std::nullopt;
  return Finding{part >= 0.3 ? 0.6 : 0.35,
                 {fmt::format("{} of the {} reserved are non-releasable: free pieces beside live blocks ({:.0f} %)",
                              to_string(held), to_string(*evidence.facts.reserved), 100 * part)}};
}

std::optional<Finding> fragmentation(const Evidence& evidence) {
  if (evidence.summary) return in_summary(evidence);
  if (evidence.history) return evidence.history->failed() ? at_failure(evidence) : without_failure(evidence);
  if (evidence.told_by_pool()) return in_message(evidence);
  if (evidence.message && evidence.message->form == "cuda-rmm-pool") {
    return Finding{0.35, {"a pool of one size that has been in use may be full of pieces that are too small"}};
  }
  if (evidence.told_by(Teller::Jax) && evidence.facts.requested) {
    return Finding{
        0.2, {"the message has a request and no figures of the pool: a fragmented pool fails as a full one does"}};
  }
  return std::nullopt;
}

// For a message that states no private pools, or small ones. Finds the cause if they hold something and the device had
// 1 GiB more free than was asked for. Finds it too if the text around the message shows a capture of CUDA graphs.
std::optional<Finding> pools_in_message(const Evidence& evidence) {
  if (!evidence.message || (!evidence.told_by_pool() && !evidence.told_by(Teller::CudaDriver))) return std::nullopt;
  const Facts& facts = evidence.facts;
  const bool room = facts.free && facts.requested && facts.free >= sum(facts.requested, 1_GiB);
  if (evidence.private_pools.value_or(Bytes{}) > Bytes{} && room && !facts.allowed) {
    return Finding{
        0.42,
        {fmt::format("{} were free and {} asked for; {} lie in private pools (a CUDA graph's, or a MemPool), "
                     "which take memory in a way of their own",
                     to_string(*facts.free), to_string(*facts.requested), to_string(*evidence.private_pools))}};
  }
  if (!evidence.signs.has(Sign::GraphCapture)) return std::nullopt;
  return Finding{0.4,
                 {"it failed while CUDA graphs were captured, which keep memory of their own: " +
                  evidence.signs.where(Sign::GraphCapture)}};
}

std::optional<Finding> private_pools(const Evidence& evidence) {
  Bytes held;
  std::optional<Bytes> of = evidence.facts.allocated;
  if (evidence.private_pools) held = *evidence.private_pools;
  if (evidence.history && evidence.history->layout) {
    held = evidence.history->layout->in_private_pools;
    of = evidence.facts.reserved;
  }
  const double part = share(held, of);
  if (part < 0.1) return pools_in_message(evidence);
  return Finding{part >= 0.4 ? 0.6 : 0.3,
                 {fmt::format("{} of {} ({:.0f} %) lie in private pools of CUDA graphs, which nobody else can use",
                              to_string(held), to_string(*of), 100 * part)}};
}

std::optional<Finding> driver_pool(const Evidence& evidence) {
  if (!evidence.told_by(Teller::CudaMallocAsync)) return std::nullopt;
  const Facts& facts = evidence.facts;
  const std::optional<Bytes> missing = difference(facts.capacity, sum(facts.allocated, facts.free));
  if (!missing || !facts.requested || *missing < *facts.requested || share(missing, facts.capacity) < 0.08) {
    return std::nullopt;
  }
  return Finding{share(missing, facts.capacity) >= 0.15 ? 0.65 : 0.45,
                 {fmt::format("{} of {} are neither allocated ({}) nor free ({}): pieces in the driver's own pool, or "
                              "other processes",
                              to_string(*missing), to_string(*facts.capacity), to_string(*facts.allocated),
                              to_string(*facts.free))}};
}

// The pool holds a free block that is large enough, and the request failed all the same.
std::optional<Finding> fitting_block(const Evidence& evidence) {
  if (!evidence.history || !evidence.history->failed() || !evidence.history->layout) return std::nullopt;
  const PoolLayout& layout = *evidence.history->layout;
  const Bytes asked = *evidence.facts.requested;
  if (asked == Bytes{} || layout.largest_hole < asked + 1_MiB) return std::nullopt;
  return Finding{
      0.6,
      {fmt::format("{} were asked for, and the pool had {} free in one piece", to_string(asked),
                   to_string(layout.largest_hole)),
       "a block serves only its own stream, its own pool (small requests, CUDA graphs, a MemPool) and, under "
       "max_split_size_mb, requests of about its size"}};
}

constexpr std::array kFragmentationRules = {
    CauseRule{"fragmentation", "The cached bytes lie in pieces too small to use or give back", &fragmentation},
    CauseRule{"fitting_block_unused", "The pool had a block that fits, but not for this request", &fitting_block},
    CauseRule{"private_pools", "CUDA graphs hold memory of their own", &private_pools},
    CauseRule{"driver_pool_fragmentation", "The driver's pool (cudaMallocAsync) lies in pieces", &driver_pool},
};

}  // namespace

std::span<const CauseRule> fragmentation_rules() { return kFragmentationRules; }

}  // namespace ullage::diagnose
