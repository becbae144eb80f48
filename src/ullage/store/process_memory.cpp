// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace ullage::store {
namespace {

// Reads a small file of /proc. No allocation: it runs inside the allocator. Opened anew each time, so it is right after
// fork.
template <std::size_t N>
bool read_small_file(const char* path, char (&text)[N]) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, N - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

}  // namespace

Bytes resident_now() {
  char text[128];
  if (!read_small_file("/proc/self/statm", text)) return {};
  const char* second = std::strchr(text, ' ');  // size resident shared ...
  if (second == nullptr) return {};
  return Bytes{std::strtoull(second, nullptr, 10)} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Bytes resident_peak() {
  char text[4096];
  if (!read_small_file("/proc/self/status", text)) return {};
  const char* line = std::strstr(text, "VmHWM:");
  if (line == nullptr) return {};
  return Bytes{std::strtoull(line + 6, nullptr, 10)} * 1024;
}

}  // namespace ullage::store
