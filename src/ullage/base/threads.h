// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads of Ullage's own, with all signals blocked that somebody may send, so that handlers run where they ran before.

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <thread>
#include <utility>

namespace ullage {

inline std::thread make_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // An instruction's own: blocked ones end the process. What torch starts for such a thread inherits this, too.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// One that may live as long as the process: what `body` uses lives for ever. The process's end does not wait for it,
// and torch's own globals are gone then: such a thread calls torch only where nothing else is possible.
inline void start_thread(std::function<void()> body) { make_thread(std::move(body)).detach(); }

}  // namespace ullage
