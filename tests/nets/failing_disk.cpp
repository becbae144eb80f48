// SPDX-License-Identifier: Apache-2.0
// A disk that fails on request. This library is loaded in front of libc (LD_PRELOAD). It counts the calls that write,
// read or allocate in unnamed files, and spoils one of them. An unnamed file has no name in any folder, like a spill
// file.
//
//   FAIL_WRITE=N | FAIL_READ=N | FAIL_ALLOCATE=N   the call to spoil, counted from 1
//   FAIL_HOW=EIO (the default) | ENOSPC            the call fails with that error
//   FAIL_HOW=SHORT                                 the call does only half of the bytes, in whole pages
//   FAIL_HOW=END                                   the call does nothing and returns 0, as at the end of a file
//   FAIL_ON=1                                      every later call of that kind is spoilt too
//
// Every spoilt call writes a line to stderr, so that a test can see whether any call was spoilt.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

enum class Spoil { No, Error, Half, End };

constexpr std::size_t kPage = 4096;

class Calls final {
 public:
  Calls(const char* name, const char* variable) : name_(name) {
    if (const char* text = std::getenv(variable)) first_ = std::strtol(text, nullptr, 10);
    const char* on = std::getenv("FAIL_ON");
    and_all_later_ = on != nullptr && std::strcmp(on, "1") == 0;
    if (const char* how = std::getenv("FAIL_HOW")) {
      if (std::strcmp(how, "ENOSPC") == 0) error_ = ENOSPC;
      if (std::strcmp(how, "SHORT") == 0) spoil_ = Spoil::Half;
      if (std::strcmp(how, "END") == 0) spoil_ = Spoil::End;
    }
  }

  // Returns what to do with the next call. Sets errno if that is an error.
  Spoil next() {
    const long number = count_.fetch_add(1) + 1;
    if (first_ == 0 || number < first_ || (number > first_ && !and_all_later_)) return Spoil::No;
    char line[64];
    const int length = snprintf(line, sizeof line, "failing_disk: %s %ld spoilt\n", name_, number);
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
    errno = error_;
    return spoil_;
  }

 private:
  const char* name_;
  long first_ = 0;  // 0: none
  bool and_all_later_ = false;
  int error_ = EIO;
  Spoil spoil_ = Spoil::Error;
  std::atomic<long> count_{0};
};

// True for a regular file without a link in any folder, unless it is a memfd. False for pipes and the like.
bool is_unnamed_file(int fd) {
  struct stat info = {};
  const int before = errno;
  const bool unnamed = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 0;
  char link[32];
  char target[16] = {};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const bool memory =
      unnamed && ::readlink(link, target, sizeof target - 1) > 0 && std::strncmp(target, "/memfd:", 7) == 0;
  errno = before;
  return unnamed && !memory;
}

template <class Function>
Function* next_one(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::size_t half(std::size_t size) { return size < 2 * kPage ? size : size / 2 / kPage * kPage; }

template <class Call, class Pointer>
ssize_t do_or_spoil(Calls& calls, Call* call, int fd, Pointer at, std::size_t size, off64_t offset) {
  if (!is_unnamed_file(fd)) return call(fd, at, size, offset);
  switch (calls.next()) {
    case Spoil::Error:
      return -1;
    case Spoil::End:
      return 0;
    case Spoil::Half:
      return call(fd, at, half(size), offset);
    case Spoil::No:
      break;
  }
  return call(fd, at, size, offset);
}

ssize_t write_at(int fd, const void* from, std::size_t size, off64_t offset) {
  static Calls calls("write", "FAIL_WRITE");
  static auto* call = next_one<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
  return do_or_spoil(calls, call, fd, from, size, offset);
}

ssize_t read_at(int fd, void* into, std::size_t size, off64_t offset) {
  static Calls calls("read", "FAIL_READ");
  static auto* call = next_one<ssize_t(int, void*, std::size_t, off64_t)>("pread64");
  return do_or_spoil(calls, call, fd, into, size, offset);
}

int allocate(int fd, int mode, off64_t offset, off64_t size) {
  static Calls calls("allocate", "FAIL_ALLOCATE");
  static auto* call = next_one<int(int, int, off64_t, off64_t)>("fallocate64");
  return is_unnamed_file(fd) && calls.next() != Spoil::No ? -1 : call(fd, mode, offset, size);
}

}  // namespace

extern "C" {

ssize_t pwrite(int fd, const void* from, std::size_t size, off_t offset) { return write_at(fd, from, size, offset); }
ssize_t pwrite64(int fd, const void* from, std::size_t size, off64_t offset) {
  return write_at(fd, from, size, offset);
}
ssize_t pread(int fd, void* into, std::size_t size, off_t offset) { return read_at(fd, into, size, offset); }
ssize_t pread64(int fd, void* into, std::size_t size, off64_t offset) { return read_at(fd, into, size, offset); }
int fallocate(int fd, int mode, off_t offset, off_t size) { return allocate(fd, mode, offset, size); }
int fallocate64(int fd, int mode, off64_t offset, off64_t size) { return allocate(fd, mode, offset, size); }

}  // extern "C"
