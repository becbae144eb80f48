// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/process_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

namespace ullage::store {
namespace {

// Reads a small file of /proc. Allocates nothing, because it runs inside the allocator. Opens the file anew each time,
// so that a forked child reads its own.
template <std::size_t N>
bool read_small_file(const char* path, char (&text)[N]) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, N - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

ResidentPages resident_in(const char* statm) {
  char text[128];
  if (!read_small_file(statm, text)) return {};
  const char* second = std::strchr(text, ' ');  // size resident shared ..., in pages
  if (second == nullptr) return {};
  char* third = nullptr;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const Bytes all = Bytes{std::strtoull(second, &third, 10)} * page;
  const Bytes files = Bytes{std::strtoull(third, nullptr, 10)} * page;
  return {files, saturating_sub(all, files)};
}

// Returns the bytes that a line "NAME:   123 kB" states.
std::optional<Bytes> kilobytes_in(const char* text, const char* name) {
  const char* line = std::strstr(text, name);
  if (line == nullptr) return std::nullopt;
  return Bytes{std::strtoull(line + std::strlen(name), nullptr, 10)} * 1024;
}

std::string of_process(std::int32_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

// Reads /proc/PID/stat into `text` and returns its fields from the state on; null if the process is gone.
template <std::size_t N>
const char* stat_of(std::int32_t pid, char (&text)[N]) {
  if (!read_small_file(of_process(pid, "stat").c_str(), text)) return nullptr;
  const char* behind_name = std::strrchr(text, ')');  // pid (name) state ...
  return behind_name != nullptr && behind_name[1] == ' ' ? behind_name + 2 : nullptr;
}

// Returns a number of /proc/PID/stat by its place there, as proc(5) counts, from 4 on. Zero if the process is gone.
std::uint64_t field_of(std::int32_t pid, int place) {
  char text[512];
  const char* field = stat_of(pid, text);
  for (int at = 3; at < place && field != nullptr; ++at) {
    field = std::strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  return field != nullptr ? std::strtoull(field, nullptr, 10) : 0;
}

// Appends the children of one thread; the kernel lists children by thread.
void add_children(const std::filesystem::path& thread, std::vector<std::int32_t>& to) {
  std::ifstream file(thread / "children");
  for (std::int32_t child = 0; file >> child;) to.push_back(child);
}

}  // namespace

Bytes resident_now() { return resident_in("/proc/self/statm").all(); }

Bytes resident_peak() {
  char text[4096];
  if (!read_small_file("/proc/self/status", text)) return {};
  return kilobytes_in(text, "VmHWM:").value_or(Bytes{});
}

Bytes swapped_of(std::int32_t pid) {
  char text[4096];
  if (!read_small_file(of_process(pid, "status").c_str(), text)) return {};
  return kilobytes_in(text, "VmSwap:").value_or(Bytes{});
}

Bytes resident_of(std::int32_t pid) { return resident_pages_of(pid).all(); }

ResidentPages resident_pages_of(std::int32_t pid) { return resident_in(of_process(pid, "statm").c_str()); }

SharedPages shared_pages_of(std::int32_t pid) {
  char text[2048];
  if (!read_small_file(of_process(pid, "smaps_rollup").c_str(), text))
    return {resident_of(pid), file_pages_of(pid), {}, resident_of(pid), {}};
  const std::optional<Bytes> all = kilobytes_in(text, "\nPss:"), files = kilobytes_in(text, "\nPss_File:");
  const auto part = [&text](const char* name) { return kilobytes_in(text, name).value_or(Bytes{}); };
  return {all ? *all : resident_of(pid), files ? *files : file_pages_of(pid), part("\nPrivate_Clean:"),
          part("\nShared_Clean:") + part("\nShared_Dirty:"), part("\nShared_Dirty:")};
}

Bytes proportional_of(std::int32_t pid) { return shared_pages_of(pid).proportional; }

Bytes file_pages_of(std::int32_t pid) {
  char text[4096];
  if (!read_small_file(of_process(pid, "status").c_str(), text)) return {};
  return kilobytes_in(text, "\nRssFile:").value_or(Bytes{});
}

Bytes faulted_of(std::int32_t pid) {
  return Bytes{field_of(pid, 10)} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));  // minflt
}

Address stack_of(std::int32_t pid) { return {field_of(pid, 28)}; }  // startstack

bool holds_memory(std::int32_t pid) {
  char text[512];
  const char* state = stat_of(pid, text);
  return state != nullptr && *state != 'Z' && *state != 'X';
}

std::vector<std::int32_t> process_tree(std::int32_t root) {
  std::vector<std::int32_t> tree = {root};
  for (std::size_t at = 0; at < tree.size(); ++at) {
    std::error_code gone;
    std::filesystem::directory_iterator thread(of_process(tree[at], "task"), gone);
    for (const std::filesystem::directory_iterator end; !gone && thread != end; thread.increment(gone)) {
      add_children(thread->path(), tree);
    }
  }
  return tree;
}

void kill_tree(std::int32_t root) {
  const std::vector<std::int32_t> tree = process_tree(root);
  for (auto one = tree.rbegin(); one != tree.rend(); ++one) ::kill(*one, SIGKILL);
}

std::string name_of(std::int32_t pid) {
  std::ifstream file(of_process(pid, "comm"));
  std::string name;
  std::getline(file, name);
  return name;
}

std::int32_t parent_of(std::int32_t pid) { return static_cast<std::int32_t>(field_of(pid, 4)); }

bool share_memory(std::int32_t one, std::int32_t other) {
  constexpr int kVm = 1;  // KCMP_VM of linux/kcmp.h
  return ::syscall(SYS_kcmp, one, other, kVm, 0, 0) == 0;
}

// The last field of /proc/loadavg.
std::int32_t newest_pid() {
  std::ifstream file("/proc/loadavg");
  std::string word;
  while (file >> word) {
  }
  std::int32_t pid = 0;
  std::from_chars(word.data(), word.data() + word.size(), pid);
  return pid;
}

}  // namespace ullage::store
