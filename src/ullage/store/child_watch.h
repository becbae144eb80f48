// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells when the children that this process made by fork have ended, and with them their own children that did not call
// exec. The spill file needs this, because a child may still read the slots that were in use at its fork. They must not
// be used again before it ends. Nobody has to wait for these processes or know their pids. Each fork of the parent gets
// a pipe: the child holds the write end, and its own children inherit it. When the last of them ends or calls exec, the
// read end in the parent hangs up.

#include "ullage/store/descriptor.h"

#include <cstdint>
#include <vector>

namespace ullage::store {

// Not thread-safe. Between before_fork() and the calls after that fork, no other fork may come.
class ChildWatch final {
 public:
  // `time` names the fork; it is a count, larger for later forks (SpillSpace::fork_time()). If no pipe can be made, the
  // child counts as running for ever. A child made by fork does not call this before its own forks: its children
  // inherit the end that it holds.
  void before_fork(std::uint64_t time);
  // Call this after a failed fork too. No child holds the pipe then, so it hangs up at once.
  void after_fork_in_parent();
  // Forgets the parent's forks. The child keeps its end of the pipe open for as long as it lives.
  void after_fork_in_child();

  // Returns the times of the forks whose children may still run, in rising order. Valid until the next call.
  const std::vector<std::uint64_t>& look();

 private:
  struct Fork {
    std::uint64_t time;
    Descriptor read_end;
  };

  std::vector<Fork> forks_;
  std::vector<std::uint64_t> times_;
  Descriptor write_end_;  // of the fork in progress
  Descriptor own_end_;    // in a child: open until it ends
};

}  // namespace ullage::store
