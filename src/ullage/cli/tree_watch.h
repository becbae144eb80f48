// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread of the launcher that counts what all processes of the program hold together, pages that they share once: a
// budget is the tree's, and none of its processes could know what the others share with it.

#include "ullage/store/ledger.h"

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
  Bytes resident;      // when it was counted
  // Likewise, each page that n processes share as one part in n, as if none of them were outside the tree.
  Bytes proportional;
  Bytes faulted;       // likewise, store::faulted_of()
};

// Counts `root`, which is the program, its descendants and whoever has a slot; writes into each slot of `page` what the
// tree's other processes hold, and raises the tree's peak. Milliseconds where there are several. A process that is
// alone shares nothing and is not counted. Nothing: one of them ended meanwhile, so that nobody had the pages that the
// others share with it; nothing was written. Where the budget is a card's, resident bytes are none of it: nobody is
// counted, and nothing is written.
std::optional<std::vector<TreeMember>> count_tree(store::LedgerPage& page, std::int32_t root);
// The same for those counted before, as they grew since: microseconds each. Growth is taken for their own; so is what a
// process has faulted that forked or was made by fork moments ago, since both sides then write to the pages they share,
// one by one, and the copies do not show in their resident bytes. Returns those bytes. Nothing: one of them ended, and nothing was
// written; its pages are others' now.
std::optional<Bytes> follow_tree(store::LedgerPage& page, const std::vector<TreeMember>& tree);

// Looks as long as it lives. The page must outlive it. No signal is delivered to its thread.
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
  std::vector<TreeMember> tree_;    // as counted last
  Clock::time_point next_count_{};  // at the latest
  Clock::time_point least_rest_{};  // the earliest, unless somebody waits for it
  std::thread thread_;
};

}  // namespace ullage::cli
