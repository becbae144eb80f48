// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads of the runtime's own: detached, since they live as long as the process, and with all signals blocked, so that
// a program's handlers run where they ran before. No torch here.

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <thread>
#include <utility>

namespace ullage::runtime {

// `body` never returns, and what it uses lives for ever.
inline void start_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(body)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace ullage::runtime
