// SPDX-License-Identifier: Apache-2.0

// Stands before the system calls that read and write buffers, in every process of a run. A tensor that is moved out has
// no pages. If an instruction touches it, the page fault brings it back; a system call fails with EFAULT instead.
// Gloo's threads receive into tensors by such calls, long after the program's op is over. A program may write a tensor
// by its raw address too. So the runtime brings the bytes back and keeps them there, and the call is tried once more.
// What libc calls inside (fwrite) is not seen.

#include "ullage/preload/preload.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace ullage::preload {
namespace {

std::atomic<bool (*)(const iovec*, std::size_t, bool)> hold{nullptr};
std::atomic<void (*)()> let_go{nullptr};
std::atomic<bool> line_is_open{false};  // on stderr; a progress bar leaves its line open

void note_end_of_line(int file, const void* written, ssize_t size) {
  if (file == STDERR_FILENO && size > 0) line_is_open.store(static_cast<const char*>(written)[size - 1] != '\n');
}

template <typename Call>
ssize_t with_healing(const iovec* buffers, std::size_t count, bool written, const Call& call) {
  const ssize_t done = call();
  if (done >= 0 || errno != EFAULT) return done;
  const auto holds = hold.load(std::memory_order_acquire);
  if (holds == nullptr || !holds(buffers, count, written)) {
    errno = EFAULT;
    return done;
  }
  const ssize_t again = call();
  const int error = errno;
  let_go.load(std::memory_order_relaxed)();
  errno = error;
  return again;
}

// A call that only reads its buffer (write, send) takes it as const; one that writes into its buffer does not.
template <typename Call>
ssize_t with_healing(void* buffer, std::size_t size, const Call& call) {
  const iovec one{buffer, size};
  return with_healing(&one, 1, true, call);
}
template <typename Call>
ssize_t with_healing(const void* buffer, std::size_t size, const Call& call) {
  const iovec one{const_cast<void*>(buffer), size};
  return with_healing(&one, 1, false, call);
}

using Vectored = ssize_t (*)(int, const iovec*, int);
using VectoredAt = ssize_t (*)(int, const iovec*, int, off_t);
constinit Next<ssize_t (*)(int, void*, std::size_t)> next_read{"read"};
constinit Next<ssize_t (*)(int, const void*, std::size_t)> next_write{"write"};
constinit Next<ssize_t (*)(int, void*, std::size_t, off_t)> next_pread{"pread"}, next_pread64{"pread64"};
constinit Next<ssize_t (*)(int, const void*, std::size_t, off_t)> next_pwrite{"pwrite"}, next_pwrite64{"pwrite64"};
constinit Next<Vectored> next_readv{"readv"}, next_writev{"writev"};
constinit Next<VectoredAt> next_preadv{"preadv"}, next_preadv64{"preadv64"}, next_pwritev{"pwritev"},
    next_pwritev64{"pwritev64"};
constinit Next<ssize_t (*)(int, void*, std::size_t, int)> next_recv{"recv"};
constinit Next<ssize_t (*)(int, const void*, std::size_t, int)> next_send{"send"};
constinit Next<ssize_t (*)(int, void*, std::size_t, int, sockaddr*, socklen_t*)> next_recvfrom{"recvfrom"};
constinit Next<ssize_t (*)(int, const void*, std::size_t, int, const sockaddr*, socklen_t)> next_sendto{"sendto"};
constinit Next<ssize_t (*)(int, msghdr*, int)> next_recvmsg{"recvmsg"};
constinit Next<ssize_t (*)(int, const msghdr*, int)> next_sendmsg{"sendmsg"};

template <typename... Functions>
void find(Functions&... functions) {
  (functions.found(), ...);
}

__attribute__((constructor)) void find_all() {
  find(next_read, next_write, next_pread, next_pread64, next_pwrite, next_pwrite64, next_readv, next_writev,
       next_preadv, next_preadv64, next_pwritev, next_pwritev64, next_recv, next_send, next_recvfrom, next_sendto,
       next_recvmsg, next_sendmsg);
}

}  // namespace
}  // namespace ullage::preload

void ullage_heal_system_calls(bool (*hold)(const iovec*, std::size_t, bool), void (*let_go)()) {
  ullage::preload::let_go.store(let_go, std::memory_order_relaxed);
  ullage::preload::hold.store(hold, std::memory_order_release);
}

bool ullage_stderr_line_is_open() { return ullage::preload::line_is_open.exchange(false); }

// NOLINTBEGIN(bugprone-macro-parentheses)
#define ULLAGE_EXPORTED extern "C" __attribute__((visibility("default")))
// Defines a call that takes a buffer; `declared` are its parameters, `passed` their names.
#define ULLAGE_BUFFER(name, declared, passed)                                                                \
  ULLAGE_EXPORTED ssize_t name declared {                                                                    \
    return ullage::preload::with_healing(buffer, size, [&] { return ullage::preload::next_##name passed; }); \
  }
// Defines a call that takes `count` buffers; `written`: it writes to them.
#define ULLAGE_BUFFERS(name, written, declared, passed)                                        \
  ULLAGE_EXPORTED ssize_t name declared {                                                      \
    return ullage::preload::with_healing(buffers, static_cast<std::size_t>(count), written,    \
                                         [&] { return ullage::preload::next_##name passed; }); \
  }
// Defines a call that takes a message (msghdr), which names the buffers.
#define ULLAGE_MESSAGE(name, written, declared, passed)                                        \
  ULLAGE_EXPORTED ssize_t name declared {                                                      \
    return ullage::preload::with_healing(message->msg_iov, message->msg_iovlen, written,       \
                                         [&] { return ullage::preload::next_##name passed; }); \
  }
// NOLINTEND(bugprone-macro-parentheses)

ULLAGE_BUFFER(read, (int file, void* buffer, std::size_t size), (file, buffer, size))
ULLAGE_EXPORTED ssize_t write(int file, const void* buffer, std::size_t size) {
  const ssize_t done =
      ullage::preload::with_healing(buffer, size, [&] { return ullage::preload::next_write(file, buffer, size); });
  ullage::preload::note_end_of_line(file, buffer, done);
  return done;
}
ULLAGE_BUFFER(pread, (int file, void* buffer, std::size_t size, off_t at), (file, buffer, size, at))
ULLAGE_BUFFER(pread64, (int file, void* buffer, std::size_t size, off_t at), (file, buffer, size, at))
ULLAGE_BUFFER(pwrite, (int file, const void* buffer, std::size_t size, off_t at), (file, buffer, size, at))
ULLAGE_BUFFER(pwrite64, (int file, const void* buffer, std::size_t size, off_t at), (file, buffer, size, at))
ULLAGE_BUFFERS(readv, true, (int file, const iovec* buffers, int count), (file, buffers, count))
ULLAGE_BUFFERS(writev, false, (int file, const iovec* buffers, int count), (file, buffers, count))
ULLAGE_BUFFERS(preadv, true, (int file, const iovec* buffers, int count, off_t at), (file, buffers, count, at))
ULLAGE_BUFFERS(preadv64, true, (int file, const iovec* buffers, int count, off_t at), (file, buffers, count, at))
ULLAGE_BUFFERS(pwritev, false, (int file, const iovec* buffers, int count, off_t at), (file, buffers, count, at))
ULLAGE_BUFFERS(pwritev64, false, (int file, const iovec* buffers, int count, off_t at), (file, buffers, count, at))
ULLAGE_BUFFER(recv, (int socket, void* buffer, std::size_t size, int flags), (socket, buffer, size, flags))
ULLAGE_BUFFER(send, (int socket, const void* buffer, std::size_t size, int flags), (socket, buffer, size, flags))
ULLAGE_BUFFER(recvfrom, (int socket, void* buffer, std::size_t size, int flags, sockaddr* from, socklen_t* length),
              (socket, buffer, size, flags, from, length))
ULLAGE_BUFFER(sendto,
              (int socket, const void* buffer, std::size_t size, int flags, const sockaddr* to, socklen_t length),
              (socket, buffer, size, flags, to, length))
ULLAGE_MESSAGE(recvmsg, true, (int socket, msghdr* message, int flags), (socket, message, flags))
ULLAGE_MESSAGE(sendmsg, false, (int socket, const msghdr* message, int flags), (socket, message, flags))
