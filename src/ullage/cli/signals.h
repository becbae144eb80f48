// SPDX-License-Identifier: Apache-2.0
#pragma once

// Handles signals while a program runs. A terminal sends Ctrl-C to the whole process group, so the program has it
// already and the launcher only survives it. A signal that a process sent to the launcher alone is passed on. If a
// process signals the whole group, the program may get the signal twice, because the launcher cannot see that others
// got it too.

#include <signal.h>
#include <sys/types.h>

#include <atomic>

namespace ullage::cli {

// While this object lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end this process. A signal that was ignored
// before (nohup) stays ignored, here and in the program. Up to 64 objects may exist at once, each for one program; they
// must be made and destroyed on threads that do not block these signals.
class SignalForwarder final {
 public:
  SignalForwarder();
  ~SignalForwarder();
  SignalForwarder(const SignalForwarder&) = delete;
  SignalForwarder& operator=(const SignalForwarder&) = delete;

  // hold() blocks these signals and release() unblocks them: from before fork until forward_to().
  void hold();
  void release();

  // Call in the child after fork: restores handlers and mask as they were before this object.
  void undo_in_child();

  // Sets the process that signals are passed on to; 0: none.
  void forward_to(pid_t child);

  // Returns the last of these signals that arrived while an object of this class lived, even if it was not passed on.
  // Returns 0 if none did. A new object forgets it, unless another object lives.
  static int received();
  // Returns how many of them arrived since this process began.
  static unsigned times_received();

 private:
  std::atomic<pid_t>* child_ = nullptr;  // this object's place in the list that the handler reads
  sigset_t mask_before_{};               // of the thread that holds
};

}  // namespace ullage::cli
