// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts, on threads of the launcher, what all processes of the program hold together. Pages that they share count
// once. The budget is for the whole tree, and no process of it can see what it shares with the others. Edit this if the
// sum over processes is wrong, or counts take too much time.

#include "ullage/cli/program_holds.h"
#include "ullage/cli/signals.h"
#include "ullage/store/ledger.h"
#include "ullage/store/process_memory.h"

#include <atomic>
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
  Bytes with_others;  // of pages that other processes have too, each whole
  Bytes faulted;      // the most that its minor page faults so far can have got (store::faulted_of)
  // LedgerSlot::rss, ::diverged, ::copying and ::left_to_children, read before the process was counted. So the count
  // includes all that they include, but for what ops were still copying.
  std::uint64_t slot_rss = 0, slot_diverged = 0, slot_copying = 0, slot_left = 0;
  // Guesses of follow_tree(), both in `proportional`. `files_taken`: pages of files that it took since the count, if it
  // has a pool or was made by fork. Another process may have them too: a parent its libraries, or a loader's worker the
  // batch that it made. `copied`: what may be copies of shared pages.
  Bytes files_taken{}, copied{};
  bool runs_a_program = false;  // of its own: it shares no page with its parent but those of files
};

// Counts `root` (the program), its descendants and every process that has a slot in `page`. Takes milliseconds for each
// if there are several processes. A process that is alone shares nothing, so its bytes are not counted. Returns nothing
// if a process ended meanwhile: the pages that it shared may be missing. If the budget is a card's, counts nothing,
// because resident bytes do not belong to it.
std::optional<std::vector<TreeMember>> count_tree(const store::LedgerPage& page, std::int32_t root);
// Writes into each slot of `page` what the other processes hold by this count and how they changed since, and raises
// the tree's peak. `newcomers`: as for follow_tree().
void note_count(store::LedgerPage& page, const std::vector<TreeMember>& tree,
                const std::vector<std::int32_t>& newcomers = {});
// What follow_tree() saw.
struct TreeLook {
  Bytes copied;  // the part of `held` that is an estimate of copies
  Bytes taken;   // the part of `held` that is pages of files, which the tree may have had already
  Bytes held;    // what all processes hold together
  std::vector<Program> programs;
};
// Estimates what a new count would give for the processes in `tree`, and tells it to the slots. If there is only one,
// does nothing and returns zeros. Takes microseconds for each process, because shared pages are not counted anew. A
// process counts as in count_tree() plus the resident bytes that it grew by since. A process that writes to a page
// which others have too gets a copy. The copy replaces the shared page, so resident bytes do not grow. There are two
// kinds of such copies. Both are estimated, and the larger estimate is added, up to the bytes that the process shared
// with others:
// - Copies of a file's pages: the bytes by which its file pages fell while its anonymous pages rose. (safetensors maps
//   the file of weights. The first optimizer step copies it all.)
// - Copies of pages shared by fork, in the two seconds after the fork: the bytes that the process faulted since the
//   count, less its growth.
// `newcomers`: processes that no count knows yet. Of those that run another program than their parent, all pages but
// those of files are their own, and are added. Others may share pages with their parent, so only a count tells.
// Returns nothing, and writes no sum, if a process ended or began to run a program, because pages that it shared now
// count more in the others.
std::optional<TreeLook> follow_tree(store::LedgerPage& page, const std::vector<TreeMember>& tree,
                                    const std::vector<std::int32_t>& newcomers = {});

// Watches the tree for as long as the object lives. The page must outlive it. Its threads receive no signals. One
// follows the tree while the other counts, because processes may use up a budget's margin before a count is done.
class TreeWatch final {
 public:
  struct Settings {  // only tests change them
    // The time between two counts, if nothing calls for one, is this, or more if a count takes long.
    std::chrono::milliseconds between_counts{50};
    std::chrono::milliseconds longest_turn = ProgramHolds::kLongestTurn;
  };
  TreeWatch(store::LedgerPage& page, std::int32_t root, Settings settings);
  TreeWatch(store::LedgerPage& page, std::int32_t root) : TreeWatch(page, root, Settings{}) {}
  ~TreeWatch();
  // Returns whether this object has ended the program because the budget is too small for what its programs without a
  // pool take (ProgramHolds::too_little()). LedgerPage::too_little says why.
  bool has_ended_it() const { return has_ended_it_; }
  TreeWatch(const TreeWatch&) = delete;
  TreeWatch& operator=(const TreeWatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  void follow();
  void count();
  void count_once(Lock& lock);
  bool is_due();
  void end_if_too_little();
  void look_for_newcomers();
  void drop_counted(std::vector<std::int32_t>& pids) const;

  store::LedgerPage& page_;
  const std::int32_t root_;
  const std::chrono::milliseconds between_;
  std::mutex lock_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<bool> has_ended_it_ = false;
  bool due_ = false;                     // a count is due, or is being made
  std::int32_t newest_ = 0;              // newest_pid() when the processes were listed last
  Clock::time_point next_list_{};        // they are listed no earlier than this
  bool unready_ = false;                 // one of them still had its parent's memory
  std::vector<std::int32_t> newcomers_;  // processes of the tree that no count has met
  ProgramHolds holds_;
  unsigned signals_ = SignalForwarder::times_received();  // as of the last look
  std::vector<TreeMember> tree_;                          // of the last count
  Clock::time_point next_count_{};                        // the next count is no later than this
  Clock::time_point least_rest_{};  // the next count is no earlier than this, unless a process asks, is new or ended
  std::thread follower_, counter_;
};

}  // namespace ullage::cli
