// SPDX-License-Identifier: Apache-2.0

// The rules for causes outside this process's caching allocator (the pool). These are other processes, other consumers
// in this process, libraries that asked too late, and a driver that refuses although it reports enough free memory.
// Edit a threshold or a sentence for the user in the rule's function. A new rule is a row of kOutsideRules, described
// in docs/explain.md.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <array>

namespace ullage::diagnose {
namespace {

using trace::Teller;

// A CUDA context takes 0.3 to 0.6 GiB, a desktop some more. So this much outside the pool is no sign of other
// processes.
constexpr Bytes kContext = 700_MiB;
constexpr Bytes kContextAndDesktop = 1300_MiB;

std::string named(const std::vector<trace::ProcessUse>& processes) {
  std::string text;
  for (const trace::ProcessUse& process : processes) {
    text += fmt::format("{}process {} has {}", text.empty() ? "" : ", ", process.pid, to_string(process.bytes));
  }
  return text;
}

// Returns whether the other processes on the device may be ranks of the same program. If ranks read one checkpoint,
// every rank puts its tensors on the device that the file names, which is mostly the first one.
bool others_may_be_ranks(const Evidence& evidence) {
  return evidence.signs.has(Sign::Deserializing) && evidence.facts.device.value_or(0) == 0;
}

double confidence_of_others(Bytes others, const Evidence& evidence) {
  const double part = share(others, evidence.facts.capacity);
  const bool would_do = evidence.facts.requested && others >= *evidence.facts.requested;
  if (!would_do) return 0.15;
  const double sure = part >= 0.5 ? 0.8 : part >= 0.25 ? 0.65 : part >= 0.1 ? 0.4 : 0.15;
  return others_may_be_ranks(evidence) ? sure * 0.6 : sure;
}

// Judges by `outside`: the memory of other processes, and this process's own outside the pool, together.
std::optional<Finding> others_from_difference(const Evidence& evidence) {
  if (!evidence.outside || *evidence.outside < kContextAndDesktop) return std::nullopt;
  const Facts& facts = evidence.facts;
  const Bytes beyond = saturating_sub(*evidence.outside, kContext);
  double sure = confidence_of_others(beyond, evidence);
  if (facts.allocated.value_or(Bytes{}) > Bytes{}) sure *= 0.9;  // it may be this process's own memory outside the pool
  return Finding{sure,
                 {fmt::format("of {} only {} are this pool's and {} free: {} are outside it, and this process's CUDA "
                              "context explains at most about {}",
                              to_string(*facts.capacity), to_string(*facts.reserved), to_string(*facts.free),
                              to_string(*evidence.outside), to_string(kContext))}};
}

// Judges by a limit for this process's pool. What the limit and the free bytes do not cover of the card is held outside
// the pool, mostly by other processes.
std::optional<Finding> others_beyond_the_limit(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  if (facts.process || facts.reserved || !facts.capacity || !facts.allowed) return std::nullopt;
  const std::optional<Bytes> others = difference(facts.capacity, sum(facts.allowed, facts.free));
  if (!others || *others < kContextAndDesktop || share(others, facts.capacity) < 0.1) return std::nullopt;
  return Finding{
      share(others, facts.capacity) >= 0.5 ? 0.7 : 0.45,
      {fmt::format("of {} this pool may hold {} and {} are free: at least {} are held outside it",
                   to_string(*facts.capacity), to_string(*facts.allowed), to_string(*facts.free), to_string(*others))}};
}

std::optional<Finding> other_process(const Evidence& evidence) {
  if (evidence.history || evidence.summary) {
    const Facts& facts = evidence.facts;
    if (!facts.capacity || !facts.free || !facts.requested) return std::nullopt;
    return others_from_difference(evidence);
  }
  if (evidence.told_by(Teller::CudaDriver) && !evidence.facts.capacity) {
    const std::string& text = evidence.message->text;
    if (text.find("THCStorage") != std::string::npos) {
      return Finding{0.15, {"the message does not say who else is on the device; nvidia-smi does"}};
    }
    const bool at_start = text.find("THCGeneral") != std::string::npos || text.find("Random") != std::string::npos;
    return Finding{at_start                          ? 0.4
                   : evidence.told_beside_the_pool() ? 0.35
                                                     : 0.25,
                   {at_start ? "it failed while torch set the device up, before any tensor: others had filled it"
                             : "an error outside PyTorch's pool often means that another process had filled the device "
                               "before"}};
  }
  if (evidence.told_by(Teller::Cublas) || evidence.told_by(Teller::Cudnn)) {
    return Finding{0.15, {"the message does not say who filled the device; nvidia-smi does"}};
  }
  if (evidence.told_by(Teller::Vllm)) {
    return Finding{0.25, {"memory was in use before the program began: another process, or one that is still ending"}};
  }
  if (!evidence.told_by_pool() || !evidence.consistent) return std::nullopt;
  if (auto found = others_beyond_the_limit(evidence)) return found;
  if (!evidence.facts.process) return others_from_difference(evidence);
  const Bytes others = evidence.others.value_or(Bytes{});
  const bool some = !evidence.other_processes.empty() || share(others, evidence.facts.capacity) >= 0.05;
  if (others < 256_MiB || !some) return std::nullopt;
  std::vector<std::string> why{fmt::format("of {} this process has {} and {} are free: others hold {}",
                                           to_string(*evidence.facts.capacity), to_string(*evidence.facts.process),
                                           to_string(evidence.facts.free.value_or(Bytes{})), to_string(others))};
  if (!evidence.other_processes.empty()) why.push_back(named(evidence.other_processes));
  return Finding{confidence_of_others(others, evidence), std::move(why)};
}

std::optional<Finding> outside_pool(const Evidence& evidence) {
  if (evidence.told_by(Teller::Mps) && evidence.other_allocations) {
    const double part = share(evidence.other_allocations, evidence.facts.allowed);
    if (part < 0.2) return std::nullopt;
    return Finding{
        0.2,
        {fmt::format("{} of Metal memory are not in PyTorch's pool (its pool: {})",
                     to_string(*evidence.other_allocations), to_string(evidence.facts.allocated.value_or(Bytes{})))}};
  }
  if (evidence.told_by(Teller::Nccl)) {
    return Finding{0.4,
                   {"NCCL takes its buffers from the driver, beside every pool: if pools have taken the card before, "
                    "it finds no room"}};
  }
  if (!evidence.consistent) return std::nullopt;
  if (evidence.own_outside) {
    const Bytes own = *evidence.own_outside;
    if (own < 1_GiB && share(own, evidence.facts.capacity) < 0.1) return std::nullopt;
    const bool would_do = evidence.facts.requested && own >= *evidence.facts.requested;
    return Finding{
        would_do && share(own, evidence.facts.capacity) >= 0.15 ? 0.5 : 0.2,
        {fmt::format("this process holds {} and its pool {}: {} are its context, libraries, NCCL's buffers or "
                     "another framework's",
                     to_string(*evidence.facts.process), to_string(*evidence.facts.reserved), to_string(own))}};
  }
  if (!evidence.told_by_pool() || !evidence.outside || *evidence.outside < 500_MiB) return std::nullopt;
  const double part = share(evidence.outside, evidence.facts.capacity);
  if (part < 0.1) return std::nullopt;
  return Finding{part >= 0.25 ? 0.25 : 0.15,
                 {fmt::format("{} of {} are in no pool of this process: the CUDA context, libraries, other frameworks",
                              to_string(*evidence.outside), to_string(*evidence.facts.capacity))}};
}

std::optional<Finding> late_library_handle(const Evidence& evidence) {
  if (!evidence.told_by_library()) return std::nullopt;
  const std::string& text = evidence.message->text;
  if (evidence.signs.has(Sign::DeviceAssert)) return std::nullopt;
  const bool says_memory = text.find("ALLOC_FAILED") != std::string::npos ||
                           text.find("out of memory") != std::string::npos || evidence.facts.requested ||
                           evidence.message->form == "cublas-alloc";
  const bool at_birth = text.find("NOT_INITIALIZED") != std::string::npos || text.find("Create") != std::string::npos;
  if ((!says_memory && !at_birth) || evidence.message->form.find("host") != std::string::npos) return std::nullopt;
  return Finding{evidence.told_by(Teller::Nccl) ? 0.5 : 0.55,
                 {at_birth ? "the library failed while it made its handle, which needs device memory of its own"
                           : "the library asked the device for memory of its own and got none",
                  "PyTorch's pool does not give cached bytes back for requests that are not its own"}};
}

std::optional<Finding> library_workspace(const Evidence& evidence) {
  const bool no_algorithm =
      evidence.message && evidence.message->text.find("valid cuDNN algorithm") != std::string::npos;
  if (evidence.message && evidence.message->form.starts_with("tensorrt-")) {
    return Finding{0.45, {"an implementation wants more workspace than the builder may use or the device has free"}};
  }
  if (!evidence.told_by(Teller::Cudnn)) return std::nullopt;
  if (no_algorithm) return Finding{0.4, {"cuDNN found no algorithm: those that fit the shape may lack workspace"}};
  if (evidence.message->text.find("ALLOC_FAILED") == std::string::npos) return std::nullopt;
  return Finding{0.3, {"cuDNN's algorithms ask for workspaces; with cudnn.benchmark it tries the largest ones too"}};
}

// Metal refused at most half of the limit to a process that held next to nothing (64 MiB at most).
std::optional<Finding> metal_refused(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  const Bytes held = sum(facts.allocated, evidence.other_allocations.value_or(Bytes{})).value_or(1_GiB);
  if (held > 64_MiB || !facts.allowed || !facts.requested || *facts.requested > *facts.allowed / 2) return std::nullopt;
  return Finding{0.5,
                 {fmt::format("{} were refused, {} were held and {} are allowed", to_string(*facts.requested),
                              to_string(held), to_string(*facts.allowed)),
                  "virtual machines (runners of CI services) have a Metal device without memory: use the CPU there"}};
}

// The message has the words of a full device. But the call that failed, or other lines of the log, show that the driver
// is at fault.
std::optional<Finding> driver_at_fault(const Evidence& evidence) {
  if (evidence.signs.has(Sign::NoDriver)) {
    return Finding{0.55,
                   {"the driver does not answer at all: " + evidence.signs.where(Sign::NoDriver),
                    "whatever is asked of it then fails, on an empty device too"}};
  }
  if (evidence.told_by(Teller::CudaDriver) && evidence.signs.has(Sign::FreesOnly)) {
    return Finding{
        0.4,
        {"the call that failed gives memory back and asks for none: " + evidence.signs.where(Sign::FreesOnly),
         "an earlier call failed, or the driver is at fault: a newer or an older driver shows which"}};
  }
  if (evidence.message->form == "xpu-driver") {
    return Finding{0.35, {"Level Zero reports a fault of its driver in the same words as a full device"}};
  }
  if (evidence.message->form == "vulkan-submit" || evidence.message->form == "nvrm") {
    return Finding{0.35, {"the driver's part in the kernel found no memory for itself; it takes the machine's memory"}};
  }
  return std::nullopt;
}

// The driver refused, although its own figure says that there was room.
std::optional<Finding> driver_refused(const Evidence& evidence) {
  if (evidence.told_by(Teller::Mps)) return metal_refused(evidence);
  if (evidence.message) {
    if (auto found = driver_at_fault(evidence)) return found;
  }
  const Facts& facts = evidence.facts;
  if (!evidence.told_by_pool() || !facts.free || !facts.requested) return std::nullopt;
  // A segment is rounded up to 2 MiB, and printed figures are rounded. So what prints as "4.44 GiB free" may be less
  // than a request that prints as "4.44 GiB".
  const Bytes spare = 2_MiB + evidence.precision * 2;
  if (saturating_sub(*facts.free, *facts.requested) < spare) return std::nullopt;
  if (facts.allowed && *facts.allowed < facts.capacity.value_or(*facts.allowed)) return std::nullopt;
  std::vector<std::string> why{fmt::format("{} were free and {} asked for, and the driver refused",
                                           to_string(*facts.free), to_string(*facts.requested))};
  if (evidence.told_by(Teller::Xpu) || evidence.has_more_free_than_capacity()) return Finding{0.4, std::move(why)};
  if (evidence.private_pools.value_or(Bytes{}) > Bytes{}) {
    why.push_back("a private pool is in use, which may have refused in the driver's place");
    return Finding{0.4, std::move(why)};
  }
  why.push_back(
      "seen on Windows (the page file backs device memory and was too small), on APUs, and when another process held "
      "the bytes for a moment");
  return Finding{0.6, std::move(why)};
}

constexpr std::array kOutsideRules = {
    CauseRule{"other_process", "Another process holds device memory", &other_process},
    CauseRule{"outside_pool", "Device memory outside PyTorch's pool", &outside_pool},
    CauseRule{"late_library_handle", "The device was full when a library wanted memory of its own",
              &late_library_handle},
    CauseRule{"library_workspace", "A library's workspaces do not fit (cuDNN, TensorRT)", &library_workspace},
    CauseRule{"driver_refused", "The driver refused although it says there is room", &driver_refused},
};

}  // namespace

std::span<const CauseRule> outside_rules() { return kOutsideRules; }

}  // namespace ullage::diagnose
