// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/fault_handler.h"

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace ullage::runtime {
namespace {

struct Handler {
  store::Pager* pager = nullptr;
  std::function<void(const store::Pager::FaultAnswer&)> give_up;
  std::mutex lock;             // of `before`
  struct sigaction before {};  // gets the faults that are not ours
  std::atomic<bool> dying{false};
};

// Never destroyed: faults may come after every destructor has run.
Handler& handler() {
  static auto* one = new Handler;
  return *one;
}

void die_of(int signal_number, const siginfo_t* info) {
  handler().dying.store(true);
  signal(signal_number, SIG_DFL);
  // A signal that a process sent must be sent again. One that an instruction raised comes again by itself: the
  // instruction runs again as soon as this returns.
  if (info->si_code <= 0) raise(signal_number);
}

// Calls the handler that was there before, for a fault that is not ours. Some handlers end by raising the signal again,
// as Python's faulthandler does. The signal then arrives here while that handler still runs, and the process ends as it
// would without us.
void pass_on(int signal_number, siginfo_t* info, void* context) {
  static thread_local std::uintptr_t passing_from = 0;
  char here = 0;
  const auto depth = reinterpret_cast<std::uintptr_t>(&here);
  const bool inside = passing_from != 0 && depth < passing_from;  // stacks grow downwards
  struct sigaction before {};
  {
    const std::lock_guard guard(handler().lock);
    before = handler().before;
  }
  const bool is_function = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
  if (inside || !is_function) return die_of(signal_number, info);
  passing_from = depth;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal_number, info, context);
  } else {
    before.sa_handler(signal_number);
  }
  passing_from = 0;
}

bool is_ours(Address at) { return handler().pager->store().owns(at) || handler().pager->holds_file(at); }

void on_signal(int signal_number, siginfo_t* info, void* context) {
  const int error = errno;
  const Address at{reinterpret_cast<std::uint64_t>(info->si_addr)};
  if (info->si_code > 0 && handler().pager != nullptr && is_ours(at)) {
    const store::Pager::FaultAnswer answer = handler().pager->on_fault(at);
    if (answer.what == store::Pager::Fault::Failed) handler().give_up(answer);
    if (answer.what == store::Pager::Fault::Healed) {
      errno = error;
      return;
    }
  }
  pass_on(signal_number, info, context);
  errno = error;
}

// Runs on the thread's own stack, because an alternate one may be small. The signal is not blocked meanwhile, so that
// the handler before ours runs under the same conditions as without us.
struct sigaction ours() {
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  return action;
}

}  // namespace

void install_fault_handler(store::Pager& pager, std::function<void(const store::Pager::FaultAnswer&)> give_up) {
  handler().pager = &pager;
  handler().give_up = std::move(give_up);
  reassert_fault_handler();
}

bool hold_buffers(const iovec* buffers, std::size_t count, bool written) {
  store::Pager* const pager = handler().pager;
  if (pager == nullptr) return false;
  std::vector<store::OpInput> inputs;
  for (const iovec& buffer : std::span(buffers, count)) {
    const Address at{reinterpret_cast<std::uint64_t>(buffer.iov_base)};
    if (pager->store().owns(at)) inputs.push_back({at, Bytes{buffer.iov_len}, written});
  }
  return !inputs.empty() && !pager->begin_op(0, inputs);
}

void let_buffers_go() { handler().pager->end_op(/*remember=*/false); }

void reassert_fault_handler() {
  Handler& one = handler();
  if (one.pager == nullptr || one.dying.load()) return;
  const std::lock_guard guard(one.lock);
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_signal) return;
  one.before = now;
  const struct sigaction action = ours();
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace ullage::runtime
