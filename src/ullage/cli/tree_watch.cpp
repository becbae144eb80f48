// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/tree_watch.h"

#include "ullage/base/threads.h"
#include "ullage/store/process_memory.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ullage::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Between two counts: the larger of this and so many times what the last one took of a processor, since the kernel
// walks all pages of all processes for it.
constexpr std::chrono::milliseconds kBetweenCounts{50};
constexpr int kRest = 20;
// Between two looks at how those that were counted grew.
constexpr std::chrono::milliseconds kBetweenLooks{10};

// Who has a slot may have been left by its parent, and descend from nobody of the tree.
std::vector<std::int32_t> members(const store::LedgerPage& page, std::int32_t root) {
  std::vector<std::int32_t> pids = store::process_tree(root);
  for (const store::LedgerSlot& slot : page.slots) {
    const std::int32_t pid = slot.pid.load();
    if (pid > 0 && store::is_alive(slot) && std::ranges::find(pids, pid) == pids.end()) pids.push_back(pid);
  }
  return pids;
}

Clock::duration processor_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void note_counted(store::LedgerPage& page, std::int32_t pid) {
  for (store::LedgerSlot& slot : page.slots) {
    if (slot.pid.load() == pid) slot.rss_counted.store(slot.rss.load());
  }
}

// `tree`: as of now.
void tell(store::LedgerPage& page, const std::vector<TreeMember>& tree) {
  Bytes total{};
  for (const TreeMember& member : tree) total += member.proportional;
  for (store::LedgerSlot& slot : page.slots) {
    const auto own = std::ranges::find(tree, slot.pid.load(), &TreeMember::pid);
    slot.others.store(own != tree.end() ? saturating_sub(total, own->resident).count : 0);
  }
  store::raise_to(page.tree_peak, total.count);
}

}  // namespace

std::vector<TreeMember> count_tree(store::LedgerPage& page, std::int32_t root) {
  const std::vector<std::int32_t> pids = members(page, root);
  std::vector<TreeMember> tree;
  if (pids.size() == 1) {
    tell(page, tree);
    return tree;
  }
  tree.reserve(pids.size());
  for (const std::int32_t pid : pids) {
    note_counted(page, pid);
    tree.push_back({pid, store::resident_of(pid), store::proportional_of(pid)});
  }
  tell(page, tree);
  return tree;
}

void follow_tree(store::LedgerPage& page, const std::vector<TreeMember>& tree) {
  std::vector<TreeMember> now = tree;
  for (TreeMember& member : now) {
    note_counted(page, member.pid);
    const Bytes before = std::exchange(member.resident, store::resident_of(member.pid));
    member.proportional = saturating_sub(member.proportional + member.resident, before);
  }
  tell(page, now);
}

TreeWatch::TreeWatch(store::LedgerPage& page, std::int32_t root)
    : page_(page), root_(root), thread_(make_thread([this] { run(); })) {}

TreeWatch::~TreeWatch() {
  {
    const std::lock_guard lock(lock_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TreeWatch::run() {
  std::vector<TreeMember> tree;
  Clock::time_point next_count = Clock::now();
  std::unique_lock lock(lock_);
  while (!over_) {
    if (Clock::now() < next_count) {
      follow_tree(page_, tree);
    } else {
      const Clock::duration before = processor_time();
      tree = count_tree(page_, root_);
      const Clock::duration took = processor_time() - before;
      next_count = Clock::now() + std::max<Clock::duration>(kBetweenCounts, took * kRest);
    }
    const Clock::duration wait = tree.empty() ? Clock::duration(kBetweenCounts) : kBetweenLooks;
    changed_.wait_for(lock, wait, [this] { return over_; });
  }
}

}  // namespace ullage::cli
