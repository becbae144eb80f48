// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells when the children that a process made by fork, and all of their own that did not exec, have ended. Nobody has
// to wait for them or know their numbers: each fork has a pipe whose write end lives in the child and is inherited by
// its children; when the last of them ends or calls exec, the read end in the parent hangs up.

#include "ullage/store/descriptor.h"

#include <cstdint>
#include <vector>

namespace ullage::store {

// Not thread-safe. The three calls of a fork belong together: no other fork may come between them.
class ChildWatch final {
 public:
  // `time` names the fork; later forks have larger ones. When no pipe can be made, the child counts as running for
  // ever.
  void before_fork(std::uint64_t time);
  // Also after a fork that failed: no child holds the pipe then, and it hangs up at once.
  void after_fork_in_parent();
  // The child watches nobody, and keeps its end of the pipe for as long as it lives.
  void after_fork_in_child();

  // Times of the forks whose children may still run, rising.
  const std::vector<std::uint64_t>& look();

 private:
  struct Fork {
    std::uint64_t time;
    Descriptor read_end;
  };

  std::vector<Fork> forks_;
  std::vector<std::uint64_t> times_;
  Descriptor write_end_;  // of the fork under way
  Descriptor own_end_;    // a child's: open until it ends
};

}  // namespace ullage::store
