// SPDX-License-Identifier: Apache-2.0

// Errors that read like a lack of memory but have another cause.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <array>

namespace ullage::diagnose {
namespace {

using trace::Teller;

std::optional<Finding> index_error_in_disguise(const Evidence& evidence) {
  if (!evidence.message) return std::nullopt;
  if (!evidence.told_by_library() && !evidence.told_by(Teller::CudaDriver)) return std::nullopt;
  if (evidence.signs.has(Sign::DeviceAssert)) {
    return Finding{0.9,
                   {"an assertion on the device came first: " + evidence.signs.where(Sign::DeviceAssert),
                    "after it every call fails, whatever its own message says"}};
  }
  if (!evidence.told_by(Teller::Cublas)) return std::nullopt;
  return Finding{0.15,
                 {"an index or class number out of range (embedding, cross entropy) ends in the same words, because "
                  "errors of kernels are reported late"}};
}

std::optional<Finding> garbage_size(const Evidence& evidence) {
  if (!evidence.message || !evidence.facts.requested) return std::nullopt;
  const Bytes asked = *evidence.facts.requested;
  if (asked >= 64_GiB * 1024) {
    return Finding{0.95, {fmt::format("{} were asked for: no program means that", to_string(asked))}};
  }
  if (asked < 4_GiB * 1024) return std::nullopt;
  return Finding{0.4, {fmt::format("{} in one request is more than any device or host has", to_string(asked))}};
}

std::optional<Finding> beyond_figures(const Evidence& evidence) {
  if (!evidence.message || evidence.facts.requested) return std::nullopt;
  const std::string& text = evidence.message->text;
  if (text.find("1EB") == std::string::npos && text.find(" EiB") == std::string::npos) return std::nullopt;
  return Finding{0.95, {"more than an exabyte was asked for: no program means that"}};
}

std::optional<Finding> garbage(const Evidence& evidence) {
  if (auto found = beyond_figures(evidence)) return found;
  return garbage_size(evidence);
}

std::optional<Finding> library_mismatch(const Evidence& evidence) {
  if (!evidence.told_by(Teller::Cudnn) && !evidence.told_by(Teller::Cublas) && !evidence.told_by(Teller::Cusolver)) {
    return std::nullopt;
  }
  if (evidence.signs.has(Sign::DeviceAssert)) return std::nullopt;
  return Finding{0.1,
                 {"a driver or library of another CUDA version fails with the same words, on an empty device too"}};
}

std::optional<Finding> on_chip_memory(const Evidence& evidence) {
  if (!evidence.is_on_chip()) return std::nullopt;
  return Finding{
      0.95,
      {"a block of the kernel wants more on-chip memory than one multiprocessor or core has: " + evidence.message->text,
       "how much of the device's memory is free does not matter"}};
}

std::optional<Finding> disk_full(const Evidence& evidence) {
  if (!evidence.told_by(Teller::SharedMemory)) return std::nullopt;
  switch (full_file_system(evidence)) {
    case FileSystem::Disk:
      return Finding{0.9, {"what was written does not lie in /dev/shm: df -h shows which disk is full"}};
    case FileSystem::MostLikelyDisk:
      return Finding{0.7, {"no frame hands data to another process, so no file of shared memory was written"}};
    case FileSystem::Unknown:
      return Finding{0.4, {"a full disk fails with the same words as a full /dev/shm"}};
    case FileSystem::SharedMemory:
      break;
  }
  return std::nullopt;
}

constexpr std::array kNotMemoryRules = {
    CauseRule{"index_error_in_disguise", "Not memory: an index out of range on the device", &index_error_in_disguise},
    CauseRule{"garbage_size", "Not memory: the size asked for is nonsense", &garbage},
    CauseRule{"not_memory", "Not the device's memory: a kernel wants more on-chip memory than there is",
              &on_chip_memory},
    CauseRule{"disk_full", "Not memory: a disk is full", &disk_full},
    CauseRule{"library_mismatch", "Not memory: a library that does not fit the driver", &library_mismatch},
};

}  // namespace

std::span<const CauseRule> not_memory_rules() { return kNotMemoryRules; }

}  // namespace ullage::diagnose
