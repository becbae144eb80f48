// SPDX-License-Identifier: Apache-2.0
#pragma once

// Starts Ullage's own threads. They block all signals but those of faults, so that the program's signal handlers still
// run on the program's threads.

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <thread>
#include <utility>

namespace ullage {

// Is the calling thread one of Ullage's own? Not so for threads that torch starts from one.
inline thread_local bool is_ullages_thread = false;

inline std::thread make_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // These come from the thread's own instructions. If they were blocked, the kernel would kill the process.
  // Threads that torch starts from the new thread inherit the mask.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([body = std::move(body)] {
    is_ullages_thread = true;
    body();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// Starts a detached thread that may run until the process ends; whatever `body` uses must live for ever. The exiting
// process does not wait for it, and torch's globals are destroyed by then. So `body` avoids calls to torch if it can.
inline void start_thread(std::function<void()> body) { make_thread(std::move(body)).detach(); }

}  // namespace ullage
