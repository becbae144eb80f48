// SPDX-License-Identifier: Apache-2.0
// The format is described in Documentation/admin-guide/cgroup-v2.rst of the kernel, "DMEM": one line for each region,
// "drm/0000:03:00.0/vram0 1073741824", or "max" in place of the number.
#include "ullage/cuda/group_limit.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>

namespace ullage::cuda {
namespace {

namespace fs = std::filesystem;

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the path of the process's group of version 2, such as "/user.slice/job"; empty if there is none.
fs::path own_group(const fs::path& proc) {
  std::ifstream in(proc / "self" / "cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

// Returns the sum over the card's regions in one group's file; nothing if it has none there, or one without a limit.
std::optional<Bytes> limit_in(const fs::path& file, const std::string& bus_id) {
  std::ifstream in(file);
  std::optional<Bytes> sum;
  for (std::string line; std::getline(in, line);) {
    const std::size_t blank = line.rfind(' ');
    if (blank == std::string::npos) continue;
    if (in_lower_case(line.substr(0, blank)).find(bus_id) == std::string::npos) continue;
    std::uint64_t limit = 0;
    const char* const end = line.data() + line.size();
    if (std::from_chars(line.data() + blank + 1, end, limit).ec != std::errc{}) return std::nullopt;  // "max"
    sum = sum.value_or(Bytes{}) + Bytes{limit};
  }
  return sum;
}

}  // namespace

std::optional<Bytes> group_limit(const std::string& bus_id, const GroupRoots& roots) {
  std::optional<Bytes> least;
  fs::path group = roots.cgroup;
  const auto look = [&] {
    const std::optional<Bytes> limit = limit_in(group / "dmem.max", in_lower_case(bus_id));
    if (limit) least = std::min(least.value_or(*limit), *limit);
  };
  look();
  for (const fs::path& part : own_group(roots.proc).relative_path()) {
    group /= part;
    look();
  }
  return least;
}

}  // namespace ullage::cuda
