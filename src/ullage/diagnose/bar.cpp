// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/bar.h"

#include "ullage/base/sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ullage::diagnose {
namespace {

using PartKind = Bar::Part::Kind;
using trace::Teller;

// Fills a bar of a known total from the left. A printed figure is rounded, so up to `slack` bytes beyond what is left
// are cut off.
class Filler {
 public:
  Filler(Bytes total, Bytes slack) : left_(total), slack_(slack) { bar_.total = total; }

  // False if the figure exceeds what is left by more than `slack`.
  bool add(PartKind kind, std::string name, Bytes bytes) {
    if (bytes > left_) {
      if (bytes - left_ > slack_) return fits_ = false;
      bytes = left_;
    }
    left_ -= bytes;
    if (bytes > Bytes{}) bar_.parts.push_back({kind, std::move(name), bytes});
    return true;
  }
  Bytes left() const { return left_; }

  std::optional<Bar> take(std::string of) {
    if (!fits_ || left_ != Bytes{}) return std::nullopt;
    bar_.of = std::move(of);
    std::stable_sort(bar_.parts.begin(), bar_.parts.end(),
                     [](const Bar::Part& a, const Bar::Part& b) { return a.kind < b.kind; });
    return std::move(bar_);
  }

 private:
  Bar bar_;
  Bytes left_;
  Bytes slack_;
  bool fits_ = true;
};

std::optional<Bar> bar_of_message(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (!evidence.consistent || !facts.capacity || !facts.allocated || *facts.capacity == Bytes{}) return std::nullopt;
  Filler bar(*facts.capacity, std::max(evidence.precision * 6, 1_MiB));
  bar.add(PartKind::Live, "tensors", *facts.allocated);
  if (facts.unallocated) {
    const bool released = evidence.told_by_pool();
    bar.add(PartKind::Stuck, released ? "cached in pieces" : "cached", *facts.unallocated);
  }
  if (facts.free) bar.add(PartKind::Free, "free", *facts.free);
  if (evidence.own_outside) {
    bar.add(PartKind::NotPyTorch, "this process's rest", std::min(*evidence.own_outside, bar.left()));
  }
  for (const trace::ProcessUse& process : evidence.other_processes) {
    bar.add(PartKind::NotPyTorch, fmt::format("process {}", process.pid), process.bytes);
  }
  const char* rest = facts.free ? "others or unknown" : "free or unknown";
  bar.add(facts.free ? PartKind::NotPyTorch : PartKind::Free, rest, bar.left());
  return bar.take(fmt::format("{}, {}", device_name(evidence), to_string(*facts.capacity)));
}

std::optional<Bar> of_limit(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (!facts.allocated || !facts.allowed || *facts.allowed == Bytes{}) return std::nullopt;
  Filler bar(*facts.allowed, std::max(evidence.precision * 6, *facts.allowed / 16));
  bar.add(PartKind::Live, "PyTorch's", *facts.allocated);
  bar.add(PartKind::NotPyTorch, "other allocations", evidence.other_allocations.value_or(Bytes{}));
  bar.add(PartKind::Free, "below the limit", bar.left());
  return bar.take(fmt::format("allowed on {}, {}", device_name(evidence), to_string(*facts.allowed)));
}

std::optional<Bar> bar_of_summary(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (!facts.reserved || !facts.allocated || *facts.reserved == Bytes{}) return std::nullopt;
  Filler bar(*facts.reserved, evidence.precision * 2);
  bar.add(PartKind::Live, "tensors", *facts.allocated);
  if (const trace::SummaryRow* stuck = evidence.summary->row("Non-releasable memory"); stuck && !stuck->counts) {
    bar.add(PartKind::Stuck, "cached but stuck", std::min(Bytes{stuck->cells[0].value}, bar.left()));
  }
  bar.add(PartKind::Usable, "cached and usable", bar.left());
  return bar.take(fmt::format("reserved by PyTorch on {}", device_name(evidence)));
}

std::optional<Bar> bar_of_history(const Evidence& evidence) {
  const History& history = *evidence.history;
  const Facts& facts = evidence.facts;
  const Bytes live = history.moment.live;
  const Bytes pool = facts.reserved.value_or(live);
  if (pool < live || pool == Bytes{}) return std::nullopt;
  const bool capacity = facts.capacity && *facts.capacity >= pool;
  const std::optional<Bytes> with_free = sum(pool, facts.free);
  const Bytes total = capacity ? *facts.capacity : with_free.value_or(pool);
  Filler bar(total, Bytes{});
  for (std::size_t i = 0; i < history.by_category.size(); ++i) {
    bar.add(PartKind::Live, std::string(name(static_cast<trace::Category>(i))), history.by_category[i]);
  }
  const Bytes cached = pool - live;
  if (history.layout) {
    const Bytes usable = std::min(history.layout->usable, cached);
    bar.add(PartKind::Usable, "cached and usable", usable);
    bar.add(PartKind::Stuck, "cached but stuck", cached - usable);
  } else {
    bar.add(PartKind::Usable, "cached and usable", cached);
  }
  if (facts.free) bar.add(PartKind::Free, "free", std::min(*facts.free, bar.left()));
  bar.add(PartKind::NotPyTorch, facts.free ? "not PyTorch's" : "free or unknown", bar.left());
  const std::string device = device_name(evidence);
  if (capacity) return bar.take(fmt::format("{}, {}", device, to_string(total)));
  if (with_free) return bar.take(fmt::format("PyTorch's pool and what was free on {}", device));
  if (!facts.reserved) return bar.take(fmt::format("live on {}", device));
  return bar.take(fmt::format("reserved by PyTorch on {}", device));
}

}  // namespace

std::string device_name(const Evidence& evidence) {
  const bool cpu = (evidence.history && evidence.history->device_is_cpu) || evidence.told_by(Teller::Cpu) ||
                   evidence.told_by(Teller::KernelKill) || evidence.told_by(Teller::SharedMemory);
  if (cpu) return "the CPU";
  const char* kind = "GPU";
  if (evidence.told_by(Teller::Npu)) kind = "NPU";
  if (!evidence.facts.device)
    return evidence.told_by(Teller::Mps) || evidence.told_by(Teller::Metal) ? "Apple's GPU" : "the device";
  return fmt::format("{} {}", kind, *evidence.facts.device);
}

std::optional<Bar> bar_of(const Evidence& evidence) {
  if (evidence.history) return bar_of_history(evidence);
  if (evidence.summary) return bar_of_summary(evidence);
  if (evidence.told_by(Teller::Mps)) return of_limit(evidence);
  return bar_of_message(evidence);
}

}  // namespace ullage::diagnose
