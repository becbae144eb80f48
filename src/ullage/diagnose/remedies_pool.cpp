// SPDX-License-Identifier: Apache-2.0

// The remedies that change PyTorch's caching allocator, or handles of libraries beside it. The table at the end says
// for which causes each is asked, and in which order. docs/explain.md lists every id.
#include "ullage/base/sizes.h"
#include "ullage/diagnose/remedies.h"
#include "ullage/sim/replay.h"

#include <fmt/format.h>

namespace ullage::diagnose {
namespace {

using trace::Teller;

// Returns the environment variable from which this version of torch reads its allocator's settings.
std::string variable(const Evidence& evidence) {
  if (evidence.message) {
    for (const char* name : {"PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      if (evidence.message->text.find(name) != std::string::npos) return name;
    }
    if (evidence.told_by(Teller::Hip)) return "PYTORCH_HIP_ALLOC_CONF";
    if (evidence.told_by(Teller::Npu)) return "PYTORCH_NPU_ALLOC_CONF";
  }
  return "PYTORCH_CUDA_ALLOC_CONF";
}

// Returns whether the wording is that of torch before 1.10, which has neither max_split_size_mb nor
// expandable_segments.
bool is_old(const Evidence& evidence) {
  return evidence.message && (evidence.told_by(Teller::Cuda) || evidence.told_by(Teller::Hip)) &&
         evidence.message->text.find("max_split_size_mb") == std::string::npos &&
         evidence.message->text.find("expandable_segments") == std::string::npos &&
         evidence.message->text.find("total capacity;") != std::string::npos;
}

Bytes reserved_under(const History& history, const sim::CachingSettings& settings) {
  return sim::what_if(*history.recorded, settings, sim::settings_of(*history.recording)).reserved_peak;
}

// Replays the recording on the allocator's model, with its own settings and with `changed`. So what the model does not
// know about the recording cancels out.
std::optional<Remedy> simulated(const History& history, const sim::CachingSettings& changed, std::string action) {
  if (!history.recorded || history.recorded->events.empty()) return std::nullopt;
  const Bytes now = reserved_under(history, sim::settings_of(*history.recording));
  const Bytes then = reserved_under(history, changed);
  const Bytes saved = saturating_sub(now, then);
  if (saved < 1_MiB) return std::nullopt;
  return Remedy{"", std::move(action), saved, Basis::Simulated,
                fmt::format("the recorded requests would reserve {} in place of {}", to_string(then), to_string(now))};
}

std::optional<Remedy> expandable_segments(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  std::string action =
      fmt::format("{}=expandable_segments:True in the environment, before torch starts", variable(evidence));
  if (evidence.history) {
    if (!evidence.history->recording) return std::nullopt;
    sim::CachingSettings settings = sim::settings_of(*evidence.history->recording);
    if (settings.expandable_segments) return std::nullopt;
    settings.expandable_segments = true;
    return simulated(*evidence.history, settings, std::move(action));
  }
  if (evidence.signs.has(Sign::Windows)) return std::nullopt;  // torch for Windows does not have it
  if (is_old(evidence)) action = "torch 2.1 or later with " + action;
  return Remedy{"", std::move(action), evidence.facts.unallocated, Basis::Computed,
                "at most: all that is cached but not allocated"};
}

std::optional<Remedy> max_split_size(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  std::string action = fmt::format("{}=max_split_size_mb:128", variable(evidence));
  if (evidence.history) {
    if (!evidence.history->recording) return std::nullopt;
    sim::CachingSettings settings = sim::settings_of(*evidence.history->recording);
    if (settings.max_split || settings.expandable_segments) return std::nullopt;
    settings.max_split = 128_MiB;
    return simulated(*evidence.history, settings, std::move(action));
  }
  if (is_old(evidence) || evidence.summary) return std::nullopt;
  return Remedy{"", std::move(action), std::nullopt, Basis::Known, "where expandable segments cannot be had (Windows)"};
}

std::optional<Remedy> same_lengths(const Asked& asked) {
  if (asked.cause.confidence < 0.3) return std::nullopt;
  return Remedy{"", "pad or bucket the batches to a few lengths, and run the longest one first", std::nullopt,
                Basis::Known, "blocks of one batch then fit the next"};
}

std::optional<Remedy> empty_cache(const Asked& asked) {
  if (asked.cause.id == "fragmentation") {
    // Only at the border of two phases do pieces have another phase's sizes: a state was read, or a copy written.
    const Signs& signs = asked.evidence.signs;
    const bool border = signs.has(Sign::Loading) || signs.has(Sign::Saving);
    if (!asked.evidence.message || !border) return std::nullopt;
  }
  Remedy remedy{"",
                "gc.collect() and torch.cuda.empty_cache() at the border between phases (after loading, before "
                "validation and saving)",
                std::nullopt, Basis::Known, "gives whole free segments back; costs time at each call"};
  if (asked.evidence.history && asked.evidence.history->layout) {
    remedy.saves = asked.evidence.history->layout->usable, remedy.basis = Basis::Computed;
  }
  return remedy;
}

std::optional<Remedy> early_handle(const Asked& asked) {
  if (asked.evidence.told_by(Teller::Nccl)) {
    return Remedy{"", "one small torch.distributed.all_reduce right after init_process_group", std::nullopt,
                  Basis::Known, "NCCL takes its buffers while there is room"};
  }
  return Remedy{"",
                "make the handles first: one small matrix product and one small convolution on the device at the start",
                std::nullopt, Basis::Known, "then the pool grows around them, and a true shortage is reported as one"};
}

std::optional<Remedy> head_room(const Asked& asked) {
  return Remedy{"", "torch.cuda.set_per_process_memory_fraction(0.9) at the start", std::nullopt, Basis::Known,
                asked.cause.id == "late_library_handle" ? "leaves a tenth of the device to libraries"
                                                        : "leaves a tenth of the device to what is not PyTorch's"};
}

std::optional<Remedy> no_benchmark(const Asked&) {
  return Remedy{"", "torch.backends.cudnn.benchmark = False", std::nullopt, Basis::Known,
                "cuDNN then does not try algorithms with large workspaces"};
}

std::optional<Remedy> native_backend(const Asked& asked) {
  const Facts& facts = asked.evidence.facts;
  return Remedy{"", "leave out backend:cudaMallocAsync (the native pool is the default)",
                difference(facts.capacity, sum(facts.allocated, facts.free)), Basis::Computed,
                "at most: all that is neither allocated nor free"};
}

std::optional<Remedy> share_graph_pool(const Asked&) {
  return Remedy{"",
                "let CUDA graphs share a pool: torch.cuda.graph(g, pool=first.pool()); capture fewer shapes; run "
                "without the MemPool",
                std::nullopt, Basis::Known, "each pool keeps what it once took"};
}

std::optional<Remedy> one_stream(const Asked&) {
  return known(
      "allocate on one stream (record_stream for tensors that cross), let CUDA graphs and MemPools share a pool, leave "
      "out max_split_size_mb",
      "then the free block serves the request");
}

constexpr std::array kPoolRemedies = {
    RemedyRule{"expandable_segments", {"fragmentation", "cached_unused"}, &expandable_segments},
    RemedyRule{"max_split_size_mb", {"fragmentation"}, &max_split_size},
    RemedyRule{"same_lengths", {"fragmentation", "cached_unused"}, &same_lengths},
    RemedyRule{"one_stream", {"fitting_block_unused"}, &one_stream},
    RemedyRule{"native_backend", {"driver_pool_fragmentation"}, &native_backend},
    RemedyRule{"share_graph_pool", {"private_pools"}, &share_graph_pool},
    RemedyRule{"early_handle", {"late_library_handle"}, &early_handle},
    RemedyRule{"head_room", {"late_library_handle", "library_workspace"}, &head_room},
    RemedyRule{"no_cudnn_benchmark", {"library_workspace"}, &no_benchmark},
    RemedyRule{"empty_cache", {"late_library_handle", "cached_unused", "fragmentation"}, &empty_cache},
};

}  // namespace

std::span<const RemedyRule> pool_remedies() { return kPoolRemedies; }

}  // namespace ullage::diagnose
