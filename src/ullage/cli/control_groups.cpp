// SPDX-License-Identifier: Apache-2.0
// The formats are described in Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel.
#include "ullage/cli/control_groups.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

// Version 1 has no word for "no limit": it shows the largest multiple of a page. No machine has 2^62 bytes.
constexpr Bytes kNoLimit{1ull << 62};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

// Returns the number that follows `key` in a file of lines "key number". With an empty key, the file is one number.
std::optional<std::uint64_t> read_number(const fs::path& file, std::string_view key = "") {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (key.empty()) return number(line);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return number(std::string_view(line).substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

// The names of a group's files in versions 2 and 1, and of the lines of memory.stat that count pages of files.
struct GroupFiles {
  const char *limit, *used;
  std::array<const char*, 2> file_pages;
  const char *swap_limit, *swap_used;  // null: not read
};
constexpr std::array<GroupFiles, 2> kGroupFiles = {{
    {"memory.max", "memory.current", {"inactive_file", "active_file"}, "memory.swap.max", "memory.swap.current"},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}, nullptr, nullptr},
}};

std::optional<Bytes> limit_of(const fs::path& group, const GroupFiles& files) {
  const std::optional<std::uint64_t> limit = read_number(group / files.limit);  // "max" is no number
  return limit && Bytes{*limit} < kNoLimit ? std::optional(Bytes{*limit}) : std::nullopt;
}

Bytes used_of(const fs::path& group, const GroupFiles& files) {
  Bytes used{read_number(group / files.used).value_or(0)};
  for (const char* pages : files.file_pages) {
    used = saturating_sub(used, Bytes{read_number(group / "memory.stat", pages).value_or(0)});
  }
  return used;
}

Bytes swap_left(const fs::path& group, const GroupFiles& files, Bytes swap_free) {
  if (files.swap_limit == nullptr) return {};
  const std::optional<std::uint64_t> limit = read_number(group / files.swap_limit);  // "max" is no number
  if (!limit) return swap_free;
  return std::min(swap_free, saturating_sub(Bytes{*limit}, Bytes{read_number(group / files.swap_used).value_or(0)}));
}

// Returns the smallest of what `of` gives for the groups that set a limit.
template <typename Function>
std::optional<Bytes> least_of(const std::vector<fs::path>& groups, Function of) {
  std::optional<Bytes> least;
  for (const fs::path& group : groups) {
    for (const GroupFiles& files : kGroupFiles) {
      const std::optional<Bytes> limit = limit_of(group, files);
      if (!limit) continue;
      const Bytes one = of(group, files, *limit);
      if (!least || one < *least) least = one;
    }
  }
  return least;
}

bool names_memory(std::string_view controllers) {
  for (;;) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Splits a group's path. Drops "..": it stands for a group above the container's own root, which we cannot reach.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(path)) {
    if (part != "/" && part != ".." && part != "." && !part.empty()) parts.push_back(part.string());
  }
  return parts;
}

// Adds to `groups` the group that `path` names below `mount`, and its ancestors up to the mount itself.
void add_with_ancestors(const fs::path& mount, std::string_view path, std::vector<fs::path>& groups) {
  if (!is_folder(mount)) return;
  const std::vector<std::string> parts = parts_of(path);
  for (std::size_t from = 0; from < parts.size(); ++from) {
    fs::path group = mount;
    for (std::size_t i = from; i < parts.size(); ++i) group /= parts[i];
    if (!is_folder(group)) continue;
    for (std::size_t up = parts.size(); up > from; --up, group = group.parent_path()) groups.push_back(group);
    break;
  }
  groups.push_back(mount);
}

}  // namespace

std::vector<fs::path> memory_groups(const MachineRoots& roots) {
  std::vector<fs::path> groups;
  std::ifstream in(roots.proc / "self" / "cgroup");
  for (std::string line; std::getline(in, line);) {  // "4:memory:/user/shell" (version 1), "0::/user/shell" (version 2)
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (names_memory(controllers)) {
      const fs::path joined = roots.cgroup / std::string(controllers);  // several controllers may share one mount
      add_with_ancestors(is_folder(joined) ? joined : roots.cgroup / "memory", path, groups);
    } else if (line.starts_with("0::")) {
      const fs::path beside_v1 = roots.cgroup / "unified";
      add_with_ancestors(is_folder(beside_v1) ? beside_v1 : roots.cgroup, path, groups);
    }
  }
  return groups;
}

std::optional<Bytes> group_limit(const std::vector<fs::path>& groups) {
  return least_of(groups, [](const fs::path&, const GroupFiles&, Bytes limit) { return limit; });
}

std::optional<Bytes> group_left(const std::vector<fs::path>& groups, Bytes swap_free) {
  return least_of(groups, [swap_free](const fs::path& group, const GroupFiles& files, Bytes limit) {
    return saturating_sub(limit, used_of(group, files)) + swap_left(group, files, swap_free);
  });
}

std::optional<std::uint64_t> oom_kills(const std::vector<fs::path>& groups, const MachineRoots& roots) {
  std::optional<std::uint64_t> sum;
  for (const fs::path& group : groups) {
    for (const char* file : {"memory.events", "memory.oom_control"}) {
      if (const auto kills = read_number(group / file, "oom_kill")) sum = sum.value_or(0) + *kills;
    }
  }
  return sum ? sum : read_number(roots.proc / "vmstat", "oom_kill");
}

}  // namespace ullage::cli
