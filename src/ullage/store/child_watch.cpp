// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/child_watch.h"

#include <poll.h>

#include <utility>

namespace ullage::store {
namespace {

bool has_hung_up(const Descriptor& read_end) {
  pollfd seen = {read_end.number(), 0, 0};
  return seen.fd >= 0 && ::poll(&seen, 1, 0) == 1 && (seen.revents & POLLHUP) != 0 && read_end.is_ours();
}

}  // namespace

void ChildWatch::before_fork(std::uint64_t time) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  forks_.push_back({time, Descriptor(ends[0])});
  write_end_ = Descriptor(ends[1]);
}

void ChildWatch::after_fork_in_parent() { write_end_.close(); }

void ChildWatch::after_fork_in_child() {
  forks_.clear();
  // A fork has no pipe of its own if its parent was itself made by fork, had nothing to watch for, or could make none.
  // Then the child goes on holding the end that its parent holds, if any.
  if (write_end_.number() >= 0) own_end_ = std::move(write_end_);
}

const std::vector<std::uint64_t>& ChildWatch::look() {
  std::erase_if(forks_, [](const Fork& fork) { return has_hung_up(fork.read_end); });
  times_.clear();
  for (const Fork& fork : forks_) times_.push_back(fork.time);
  return times_;
}

}  // namespace ullage::store
