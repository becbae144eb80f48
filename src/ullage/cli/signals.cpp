// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/signals.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>

namespace ullage::cli {
namespace {

constexpr std::array<int, 4> kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::size_t kMostObjects = 64;
constexpr pid_t kUnused = 0;    // no object has this place
constexpr pid_t kNoChild = -1;  // its object has no process yet

// Global, because a signal handler can reach nothing else. For each object: the process that signals are passed on to.
std::array<std::atomic<pid_t>, kMostObjects> g_children{};
std::atomic<int> g_received{0};
std::atomic<unsigned> g_times_received{0};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<unsigned>::is_always_lock_free);
std::mutex g_lock;  // for the next two, and for finding a free place above
std::size_t g_objects = 0;
std::array<struct sigaction, kForwarded.size()> g_before;

void handle(int number, siginfo_t* info, void*) {
  const int kept = errno;
  g_received.store(number);
  g_times_received.fetch_add(1);
  // si_code up to 0 (SI_USER, SI_QUEUE, SI_TKILL): a process sent it. Above 0: the kernel did, for the terminal.
  for (const std::atomic<pid_t>& one : g_children) {
    const pid_t child = one.load();
    if (child > 0 && info->si_code <= 0) ::kill(child, number);
  }
  errno = kept;
}

sigset_t forwarded_set() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kForwarded) sigaddset(&set, number);
  return set;
}

void restore_handlers() {
  for (std::size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &g_before[i], nullptr);
}

}  // namespace

SignalForwarder::SignalForwarder() {
  const std::lock_guard lock(g_lock);
  const auto free = std::ranges::find_if(g_children, [](const auto& child) { return child.load() == kUnused; });
  ULLAGE_CHECK(free != g_children.end(), "too many programs at once");
  child_ = &*free;
  child_->store(kNoChild);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_before_);
  if (g_objects++ > 0) return;
  g_received.store(0);
  for (std::size_t i = 0; i < kForwarded.size(); ++i) {
    sigaction(kForwarded[i], nullptr, &g_before[i]);
    if (g_before[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    action.sa_mask = forwarded_set();
    sigaction(kForwarded[i], &action, nullptr);
  }
}

SignalForwarder::~SignalForwarder() {
  const std::lock_guard lock(g_lock);
  child_->store(kUnused);
  if (--g_objects == 0) restore_handlers();
}

void SignalForwarder::hold() {
  const sigset_t set = forwarded_set();
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
}

void SignalForwarder::release() { pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr); }

void SignalForwarder::undo_in_child() {
  restore_handlers();
  release();
}

void SignalForwarder::forward_to(pid_t child) { child_->store(child > 0 ? child : kNoChild); }

int SignalForwarder::received() { return g_received.load(); }

unsigned SignalForwarder::times_received() { return g_times_received.load(); }

}  // namespace ullage::cli
