// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread of the launcher that counts what all processes of the program hold together. Pages that they share count
// once. The budget is for the whole tree, and no process of it can see what it shares with the others.

#include "ullage/store/ledger.h"
#include "ullage/store/process_memory.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ullage::cli {

// One process of the tree.
struct TreeMember {
  std::int32_t pid = 0;
  // When it was counted. In `proportional` a page that n processes of the tree share counts 1/n; processes outside the
  // tree do not matter.
  store::ResidentPages resident;
  Bytes proportional;
  Bytes with_others;  // store::SharedPages::with_others
  Bytes faulted;      // store::faulted_of()
};

// Counts `root` (the program), its descendants and every process that has a slot. Writes into each slot of `page` what
// the other processes of the tree hold, and raises the tree's peak. Takes milliseconds if there are several processes.
// A process that is alone shares nothing, so its bytes are not counted. Returns nothing if a process ended meanwhile:
// the pages that it shared may be missing from the sum, which is then not written. If the budget is a card's, counts
// and writes nothing, because resident bytes do not belong to it.
std::optional<std::vector<TreeMember>> count_tree(store::LedgerPage& page, std::int32_t root);
// Estimates the same for the processes in `tree`, in microseconds each, without counting shared pages anew. A process
// counts as in count_tree() plus the resident bytes that it grew by since. A process that writes to a page which others
// have too gets a copy. It replaces the shared page, so resident bytes do not grow. Two kinds of copies are added, at
// most as many bytes as the process had in common with others:
// - Copies of a file's pages: by how much its pages of files fell as its anonymous ones rose. (safetensors maps the
//   file of weights. The first optimizer step copies it all.)
// - Copies of pages shared by fork, in the two seconds after it: what the process faulted, less what it grew by.
// Returns the bytes of such copies. Returns nothing, and writes no sum, if a process ended, because pages that it
// shared now count more in the others.
std::optional<Bytes> follow_tree(store::LedgerPage& page, const std::vector<TreeMember>& tree);

// Watches the tree for as long as the object lives. The page must outlive it. Its thread receives no signals.
class TreeWatch final {
 public:
  TreeWatch(store::LedgerPage& page, std::int32_t root);
  ~TreeWatch();
  TreeWatch(const TreeWatch&) = delete;
  TreeWatch& operator=(const TreeWatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void count();
  bool is_due();

  store::LedgerPage& page_;
  const std::int32_t root_;
  std::mutex lock_;
  std::condition_variable changed_;
  bool over_ = false;
  std::vector<TreeMember> tree_;    // of the last count
  Clock::time_point next_count_{};  // the next count is no later than this
  Clock::time_point least_rest_{};  // and no earlier than this, unless a process asks for it or is new
  std::thread thread_;
};

}  // namespace ullage::cli
