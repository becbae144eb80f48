// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/signals.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

namespace ullage::cli {
namespace {

constexpr std::array<int, 4> kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Global, because a signal handler can reach nothing else.
std::atomic<pid_t> g_child{0};
std::atomic<int> g_received{0};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kForwarded.size()> g_before;
sigset_t g_mask_before;

void handle(int number, siginfo_t* info, void*) {
  const int kept = errno;
  const pid_t child = g_child.load();
  g_received.store(number);
  // si_code up to 0 (SI_USER, SI_QUEUE, SI_TKILL): a process sent it. Above 0: the kernel did, for the terminal.
  if (child > 0 && info->si_code <= 0) ::kill(child, number);
  errno = kept;
}

sigset_t forwarded_set() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kForwarded) sigaddset(&set, number);
  return set;
}

}  // namespace

SignalForwarder::SignalForwarder() {
  g_child.store(0);
  g_received.store(0);
  sigprocmask(SIG_SETMASK, nullptr, &g_mask_before);
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
  g_child.store(0);
  restore();
}

void SignalForwarder::hold() {
  const sigset_t set = forwarded_set();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

void SignalForwarder::release() { sigprocmask(SIG_SETMASK, &g_mask_before, nullptr); }

void SignalForwarder::undo_in_child() {
  restore();
  release();
}

void SignalForwarder::forward_to(pid_t child) { g_child.store(child); }

int SignalForwarder::received() { return g_received.load(); }

void SignalForwarder::restore() {
  for (std::size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &g_before[i], nullptr);
}

}  // namespace ullage::cli
