// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads how much of a card's memory the control groups of this process allow: dmem.max, of Linux 6.14 and later. Only
// cards whose drivers register their memory with the kernel have such a limit. A limit is only read. To set one would
// bind every process of the group, and needs a right that programs seldom have.

#include "ullage/base/bytes.h"

#include <filesystem>
#include <optional>
#include <string>

namespace ullage::cuda {

// Where the kernel's file systems are mounted. Tests put trees of their own there.
struct GroupRoots {
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path proc = "/proc";
};

// Returns the smallest limit that the process's own group or an ancestor sets for the card with this PCI address, such
// as "0000:3B:00.0". If the card has several regions of memory, their limits are added up. Nothing: no group has a
// limit for it.
std::optional<Bytes> group_limit(const std::string& bus_id, const GroupRoots& roots = {});

}  // namespace ullage::cuda
