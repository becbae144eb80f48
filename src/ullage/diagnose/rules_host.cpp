// SPDX-License-Identifier: Apache-2.0

// Causes in the host's memory: the program's own, pinned memory, /dev/shm, or one memory that host and device share.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ullage::diagnose {
namespace {

using trace::Limit;
using trace::Teller;

// The kernel's and the schedulers' own lines name the reason; "Killed" and exit code 137 do not.
Finding killed(std::string_view form) {
  if (form == "ollama-killed")
    return {0.6, {"the runner died while it loaded the model: most often for lack of memory"}};
  if (form == "worker-gone") {
    return {0.6, {"a worker ended without a word: most often for lack of host memory, and a crash looks the same"}};
  }
  if (form == "maybe-killed") return {0.4, {"a lack of host memory is one of the reasons that the message lists"}};
  if (form == "plain-killed") return {0.6, {"a person says that the system ended it: most often for lack of memory"}};
  for (std::string_view sure : {"kernel", "slurm", "lsf", "container", "ray", "hosting-limit"}) {
    if (form.starts_with(sure)) return {0.95, {"what ended the process says that it did so for lack of memory"}};
  }
  return {0.7,
          {"signal 9 or exit code 137 is how the kernel (or a container's limit) ends what uses too much host memory; "
           "other senders of signal 9 leave the same words"}};
}

// Adds what the program was doing, if the text shows that and it is work that takes host memory.
void say_what_it_did(const Signs& signs, std::vector<std::string>& why) {
  if (signs.has(Sign::Saving)) {
    why.push_back("a checkpoint was being written, which is staged on the host: " + signs.where(Sign::Saving));
  } else if (signs.has(Sign::Loading)) {
    why.push_back("a checkpoint was being loaded; if there are several ranks, each loads its own: " +
                  signs.where(Sign::Loading));
  } else if (signs.has(Sign::ReplayBuffer)) {
    why.push_back("a replay buffer keeps what it was given: " + signs.where(Sign::ReplayBuffer));
  }
}

std::optional<Finding> host_memory(const Evidence& evidence) {
  if (!evidence.message) return std::nullopt;
  const Facts& facts = evidence.facts;
  switch (evidence.message->teller) {
    case Teller::Cpu: {
      if (evidence.names_limit(Limit::Heap)) return Finding{0.4, {"a heap in the machine's memory was full"}};
      if (evidence.names_limit(Limit::Program)) {
        return Finding{0.2, {"a larger limit needs the machine's memory behind it"}};
      }
      if (facts.requested.value_or(Bytes{}) >= 64_GiB * 1024) return std::nullopt;
      if (evidence.message->form == "lmstudio-guardrails") {
        return Finding{0.45, {"the tool refused by its own estimate; nothing was asked of the machine yet"}};
      }
      if (evidence.message->form == "pinned-budget") {
        return Finding{0.6, {"the program's budget for pinned memory, a part of the machine's, is used up"}};
      }
      if (evidence.message->form == "ggml-pinned" || evidence.message->form == "pinned-buffer") {
        return Finding{0.45, {"pinned memory is bounded by the driver, whatever the machine has free"}};
      }
      const bool large = facts.requested.value_or(Bytes{}) >= 16_GiB;
      if (facts.needed && facts.free) {
        return Finding{0.75,
                       {fmt::format("{} of host memory are needed in all, and {} are available",
                                    to_string(*facts.needed), to_string(*facts.free))}};
      }
      std::string asked = facts.requested ? to_string(*facts.requested) : std::string("some bytes");
      return Finding{large ? 0.4 : 0.75,
                     {fmt::format("{} of host memory were refused: this is not the device's memory", asked)}};
    }
    case Teller::KernelKill: {
      Finding found = killed(evidence.message->form);
      say_what_it_did(evidence.signs, found.evidence);
      return found;
    }
    case Teller::CudaDriver: {
      if (evidence.signs.has(Sign::PinnedMemory)) {
        return Finding{0.75,
                       {"pinned host memory is asked of the CUDA driver: " + evidence.signs.where(Sign::PinnedMemory),
                        "it has a budget of its own: under WSL2 1 to 2 GB, else a part of the machine's memory"}};
      }
      if (evidence.message->text.find("THC") != std::string::npos) return std::nullopt;
      if (evidence.message->form == "cuda-rmm-pool" || facts.requested >= 32_GiB) return std::nullopt;
      if (evidence.spoken_by(Tool::ComfyUi) && evidence.message->form.starts_with("cuda-error")) {
        return Finding{
            0.4,
            {"a tensor that does not fit would fail as \"Allocation on device\"; this message has the driver's words, "
             "as a refusal of pinned host memory has"}};
      }
      return Finding{0.25, {"a refusal of pinned host memory has the same words; the GPU is then not full at all"}};
    }
    case Teller::Other: {
      if (!evidence.leaves_open_whose_memory()) return std::nullopt;
      if (evidence.names_a_device()) return Finding{0.2, {"the words do not say whose memory it was"}};
      return Finding{0.45, {"the words do not say whose memory it was; nothing around them speaks of a device"}};
    }
    case Teller::SharedMemory:
      if (full_file_system(evidence) == FileSystem::Disk) return std::nullopt;
      return Finding{0.05, {"a loader's worker may also die of the host's memory as a whole"}};
    case Teller::Cudnn:
    case Teller::Magma: {
      if (evidence.message->form.find("host") == std::string::npos) return std::nullopt;
      return Finding{0.7, {"the library says that it got no host memory"}};
    }
    default:
      return std::nullopt;
  }
}

std::optional<Finding> shared_memory(const Evidence& evidence) {
  if (!evidence.told_by(Teller::SharedMemory)) return std::nullopt;
  if (evidence.message->form == "errno-28") {
    switch (full_file_system(evidence)) {
      case FileSystem::Disk:
        return std::nullopt;
      case FileSystem::MostLikelyDisk:
        return Finding{0.15,
                       {"no frame hands data to another process, so it is most likely a disk: df -h shows which"}};
      case FileSystem::Unknown:
        return Finding{0.45,
                       {"processes hand tensors over in /dev/shm, which containers limit to 64 MiB; a full disk fails "
                        "with the same words: df -h shows which"}};
      case FileSystem::SharedMemory:
        break;
    }
  }
  if (is_out_of_mappings(evidence)) {
    return Finding{0.8,
                   {"so few bytes are refused if the process has as many mappings as the kernel allows "
                    "(vm.max_map_count): each tensor that a worker hands over is one"}};
  }
  return Finding{
      0.92,
      {"processes hand data over in /dev/shm, loader workers their tensors; containers limit it to 64 MiB by "
       "default"}};
}

// Returns whether the capacity is one that a discrete card shows. Most show from 3 % below to 0.5 % above a round size
// (GiB). Some show less (docs/dry.md has the table). For these the size shown counts, from 0.5 % below to 2.5 % above
// it. Older drivers show a little more of the same card, such as 14.76 GiB of a T4. A wider range around round sizes
// would take in unified machines: GB10 shows 121.69 GiB.
bool is_a_cards_size(Bytes capacity) {
  const double gib = static_cast<double>(capacity.count) / static_cast<double>((1_GiB).count);
  for (double size :
       {2., 3., 4., 6., 8., 10., 11., 12., 16., 20., 24., 32., 40., 48., 64., 80., 96., 128., 141., 192., 256., 288.}) {
    if (gib <= size * 1.005 && gib >= size * 0.97) return true;
  }
  // RTX 4060, RTX 2080 Ti, RTX 3060, T4, A10 and L4, L40S, B200
  for (double size : {7.62, 10.56, 11.62, 14.56, 22.03, 44.40, 178.35}) {
    if (gib <= size * 1.025 && gib >= size * 0.995) return true;
  }
  return false;
}

std::optional<Finding> on_mps(const Evidence& evidence) {
  const double part = share(evidence.other_allocations, evidence.facts.allowed);
  if (part < 0.15) return std::nullopt;
  return Finding{part >= 0.5 ? 0.5 : 0.35,
                 {fmt::format("{} of the {} allowed are held by others ({:.0f} %): host and GPU share one memory",
                              to_string(*evidence.other_allocations), to_string(*evidence.facts.allowed), 100 * part)}};
}

// Bytes that do not fit on the card can be moved to the machine's memory by the driver; on Windows that is the default.
// A request then fails only when that memory is full too.
std::optional<Finding> spilled_to_host(const Evidence& evidence) {
  if (evidence.message && evidence.message->form == "plain-spill") {
    return Finding{0.6,
                   {"the text says that the driver put what did not fit into the machine's memory",
                    "Windows lends a card up to half of the machine's memory; it is slow"}};
  }
  if (!evidence.told_by_pool() || evidence.told_by(Teller::Hip) || !evidence.holds_more_than_capacity()) {
    return std::nullopt;
  }
  const Facts& facts = evidence.facts;
  const Bytes held =
      std::max({facts.allocated.value_or(Bytes{}), facts.reserved.value_or(Bytes{}), facts.process.value_or(Bytes{})});
  return Finding{0.5,
                 {fmt::format("{} are held on a device of {}: the driver has put {} into the machine's memory",
                              to_string(held), to_string(*facts.capacity), to_string(held - *facts.capacity)),
                  "Windows lends a card up to half of the machine's memory; it is slow, and it ran out too"}};
}

std::optional<Finding> unified_memory(const Evidence& evidence) {
  if (!evidence.message) return std::nullopt;
  if (evidence.told_by(Teller::Mps)) return on_mps(evidence);
  if (evidence.message->form == "metal-insufficient") {
    return Finding{0.4, {"host and GPU share one memory, and the system gives the GPU a part of it"}};
  }
  const Facts& facts = evidence.facts;
  if (evidence.told_by_pool() && evidence.has_more_free_than_capacity()) {
    return Finding{
        0.5,
        {fmt::format("{} are free on a device of {}: host and device share one memory (an APU, GB10, Jetson), "
                     "and the host's programs and file caches hold a part of it",
                     to_string(*facts.free), to_string(*facts.capacity))}};
  }
  if (evidence.signs.has(Sign::UnifiedMachine) && !evidence.is_on_chip()) {
    return Finding{0.42,
                   {"host and device share one memory on this machine: " + evidence.signs.where(Sign::UnifiedMachine),
                    "file caches, and what the firmware or driver gives the GPU, decide what is left"}};
  }
  if (evidence.told_by(Teller::Vllm)) {
    if (!facts.capacity || is_a_cards_size(*facts.capacity)) return std::nullopt;
    return Finding{
        0.4,
        {fmt::format("{} is not the size of any card: on unified memory \"free\" is what the host has left, and file "
                     "caches and failed starts count against it",
                     to_string(*facts.capacity))}};
  }
  if (!evidence.told_by(Teller::Hip) || !facts.capacity) return std::nullopt;
  const bool odd = !is_a_cards_size(*facts.capacity);
  if (!evidence.consistent) return Finding{0.5, {"the figures exceed the device: an APU borrows the host's memory"}};
  if (!odd || facts.allocated.value_or(1_B) != Bytes{}) return std::nullopt;
  return Finding{
      0.5,
      {fmt::format(
          "{} is not the size of any card, and nothing was allocated: an APU whose runtime shows a part of the "
          "host's memory in place of what the firmware set aside",
          to_string(*facts.capacity))}};
}

constexpr std::array kHostRules = {
    CauseRule{"shared_memory", "Shared memory of the container is too small", &shared_memory},
    CauseRule{"host_memory", "Host memory ran out, not the device's", &host_memory},
    CauseRule{"spilled_to_host", "The device is over-full, and the machine's memory behind it is full too",
              &spilled_to_host},
    CauseRule{"unified_memory", "Host and device share one memory, and others hold it", &unified_memory},
};

}  // namespace

std::span<const CauseRule> host_rules() { return kHostRules; }

}  // namespace ullage::diagnose
