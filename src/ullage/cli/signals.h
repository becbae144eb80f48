// SPDX-License-Identifier: Apache-2.0
#pragma once

// Signals while a program runs. A terminal sends Ctrl-C to the whole process group, so the program has it already and
// the launcher only stays alive; a signal that some process sent to the launcher alone is passed on. One that was sent
// by a process to the whole group may reach the program twice: nothing tells the launcher that it was not the only one.

#include <sys/types.h>

namespace ullage::cli {

// While it lives SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end this process. One that was ignored at the start (nohup)
// stays ignored, here and in the program. At most one at a time.
class SignalForwarder final {
 public:
  SignalForwarder();
  ~SignalForwarder();
  SignalForwarder(const SignalForwarder&) = delete;
  SignalForwarder& operator=(const SignalForwarder&) = delete;

  // Keeps them waiting: between fork and forward_to, and while the program's process is taken away.
  void hold();
  void release();

  // In the child, after fork: as if this object had never been.
  void undo_in_child();

  // From now on they go to `child`; 0: to nobody.
  void forward_to(pid_t child);

  // The last of them that came while it lived, whoever else got it; 0: none.
  static int received();

 private:
  void restore();
};

}  // namespace ullage::cli
