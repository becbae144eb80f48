// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/tree_watch.h"

#include "ullage/base/sizes.h"
#include "ullage/base/threads.h"
#include "ullage/store/budget.h"
#include "ullage/store/process_memory.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ullage::cli {
namespace {

// The time between two counts is kRest times the processor time of the last count, or more (see the constructor). A
// count takes long, because the kernel walks all pages of all processes.
constexpr int kRest = 20;
// If processes copied more than this of the pages that they share, or a process started, the next count may come
// earlier: after kLeastRest times that processor time.
constexpr Bytes kWorthACount = 2_MiB;
constexpr int kLeastRest = 3;
// For how long both sides of a fork are expected to copy pages.
constexpr std::chrono::milliseconds kCopiesLast{2000};
// The time between two looks at how the counted processes grew.
constexpr std::chrono::milliseconds kBetweenLooks{10};
constexpr std::chrono::milliseconds kBetweenLooksAtTheEdge{2};  // a compiler may take 1.5 MiB in this time
// How often the tree is looked at for one count at most, if processes write shared pages meanwhile.
constexpr int kMostLooks = 3;

struct Members {
  std::vector<std::int32_t> pids;  // parents come first
  bool unready = false;            // a child of vfork() has not yet run its program
};

// Returns the processes that count: those of the tree that hold memory of their own, and `root` always. A process with
// a slot belongs to the tree even if its parent has ended, so that it no longer descends from `root`.
Members members(const store::LedgerPage& page, std::int32_t root) {
  std::vector<std::int32_t> pids = store::process_tree(root);
  for (const store::LedgerSlot& slot : page.slots) {
    const std::int32_t pid = slot.pid.load();
    if (pid > 0 && store::is_alive(slot) && std::ranges::find(pids, pid) == pids.end()) pids.push_back(pid);
  }
  Members found;
  for (const std::int32_t pid : pids) {
    if (pid != root && !store::holds_memory(pid)) continue;
    if (pid != root && store::share_memory(store::parent_of(pid), pid)) {
      found.unready = true;
    } else {
      found.pids.push_back(pid);
    }
  }
  return found;
}

// Returns whether the process runs another program than its parent. The kernel puts a program's stack at a random
// address, and a child by fork has its parent's.
bool runs_a_program(std::int32_t pid) {
  const std::uint64_t own = store::stack_of(pid).value, parents = store::stack_of(store::parent_of(pid)).value;
  return own != 0 && parents != 0 && own != parents;
}

std::chrono::nanoseconds processor_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Returns null if the process has no slot. `Page`: a LedgerPage, const or not.
template <typename Page>
auto* slot_of(Page& page, std::int32_t pid) {
  const auto slot = std::ranges::find_if(page.slots, [pid](const auto& one) { return one.pid.load() == pid; });
  return slot != page.slots.end() ? &*slot : nullptr;
}

// Returns whether the process forked, or was made by fork, less than kCopiesLast ago: it is still copying shared pages
// that it writes to.
bool has_just_forked(const store::LedgerSlot& slot) {
  const std::chrono::milliseconds forked{slot.forked_at.load()};
  return forked.count() != 0 && std::chrono::steady_clock::now().time_since_epoch() - forked < kCopiesLast;
}

bool has_newcomer(const store::LedgerPage& page, const std::vector<TreeMember>& tree) {
  return std::ranges::any_of(page.slots, [&](const store::LedgerSlot& slot) {
    return store::is_alive(slot) && std::ranges::find(tree, slot.pid.load(), &TreeMember::pid) == tree.end();
  });
}

// The resident bytes of one process that are backed by files.
struct FilePages {
  Bytes resident;
  Bytes proportional;  // a page that n processes share counts 1/n
  Bytes alone;         // pages that no other process has
};

// Returns the bytes of shared pages that a process of the tree has replaced by copies since it was counted. `before`:
// what it held then. `slot` may be null. Lowers LedgerSlot::copies_expected.
Bytes copies_of(const TreeMember& now, const store::ResidentPages& before, store::LedgerSlot* slot) {
  const Bytes of_files = std::min(saturating_sub(before.files, now.resident.files),
                                  saturating_sub(now.resident.anonymous, before.anonymous));
  if (slot == nullptr) return of_files;
  if (!has_just_forked(*slot)) {
    slot->copies_expected.store(0);
    return of_files;
  }
  const Bytes faulted = store::faulted_of(now.pid);
  const Bytes grown = saturating_sub(now.resident.all(), before.all());
  if (slot->parent.load() != 0) {  // the parent's stays: its faults include its kernels' scratch
    const Bytes expected{slot->copies_expected.load()};
    slot->copies_expected.store(std::min(expected, saturating_sub(store::Budget::kForkedInPython, faulted)).count);
  }
  return std::max(of_files, saturating_sub(faulted, now.faulted + grown));
}

// Returns how many bytes the proportional figures lack because processes outside the tree map the same libraries. Such
// a page counts in part only. It would count whole as soon as the other process ends, although no process of the tree
// allocated anything. So it counts whole from the start. The processes of a tree mostly run the same libraries. So the
// pages of `largest`, the process with the most, count once for all, and each other process adds only its private
// pages.
Bytes shared_with_outsiders(const std::vector<FilePages>& files, std::size_t largest) {
  Bytes once = files[largest].resident, counted{};
  for (std::size_t i = 0; i < files.size(); ++i) {
    counted += files[i].proportional;
    if (i != largest) once += files[i].alone;
  }
  return saturating_sub(once, counted);
}

// Writes into each slot what the other processes hold, and raises the tree's peak. `tree` has the present figures.
// `uncounted` bytes of them are of processes that no count has met. They are not in the peak, and neither is what is
// guessed. Returns the sums, without programs.
//
// Notes of the first `counted` processes, those that a count has met, how much of each is in the figures. Growth since,
// and what a process announced, come on top. While this writes, some of it counts twice, rather than not at all.
TreeLook tell(store::LedgerPage& page, const std::vector<TreeMember>& tree, std::size_t counted, Bytes uncounted = {}) {
  const auto each_counted = [&](const auto& note) {
    for (std::size_t i = 0; i < counted; ++i) {
      if (store::LedgerSlot* const slot = slot_of(page, tree[i].pid)) note(*slot, tree[i]);
    }
  };
  each_counted([](store::LedgerSlot& slot, const TreeMember& member) {
    slot.rss_seen.store(std::min(slot.rss_seen.load(), member.resident.all().count));
  });
  Bytes total{}, copied{}, taken{};
  for (const TreeMember& member : tree) {
    total += member.proportional;
    copied += member.copied;
    taken += member.files_taken;
  }
  for (store::LedgerSlot& slot : page.slots) {
    const auto own = std::ranges::find(tree, slot.pid.load(), &TreeMember::pid);
    const Bytes guessed = own != tree.end() ? copied + saturating_sub(taken, own->files_taken) : Bytes{};
    store::raise_to(slot.others_guessed, guessed.count);  // never too low for `others`, whenever both are read
    slot.others.store(own != tree.end() ? saturating_sub(total, own->resident.all()).count : 0);
    slot.others_guessed.store(guessed.count);
  }
  each_counted([](store::LedgerSlot& slot, const TreeMember& member) {
    slot.rss_counted.store(member.slot_rss);
    slot.rss_seen.store(member.resident.all().count);
  });
  store::raise_to(page.tree_peak, saturating_sub(total, copied + taken + uncounted).count);
  return {.copied = copied, .taken = taken, .held = total, .programs = {}};
}

Bytes middle(Bytes a, Bytes b) { return Bytes{a.count / 2 + b.count / 2}; }

std::optional<std::vector<TreeMember>> look_at_tree(const store::LedgerPage& page, std::int32_t root) {
  const std::vector<std::int32_t> pids = members(page, root).pids;
  std::vector<TreeMember> tree;
  tree.reserve(pids.size());
  std::vector<FilePages> files;
  files.reserve(pids.size());
  // The slots of all are read before the pages of any, so that what a process did in between shows as growth.
  for (const std::int32_t pid : pids) {
    TreeMember& member = tree.emplace_back();
    member.pid = pid;
    if (const store::LedgerSlot* slot = slot_of(page, pid)) {
      member.slot_rss = slot->rss.load();
      member.slot_diverged = slot->diverged.load();
      member.slot_copying = slot->copying.load();  // after `diverged`: an op adds to this one first
      member.slot_left = slot->left_to_children.load();
    }
  }
  if (pids.size() == 1) return tree;
  for (TreeMember& member : tree) {
    member.faulted = store::faulted_of(member.pid);
    member.runs_a_program = runs_a_program(member.pid);
    // A walk through the pages takes milliseconds, and the process may grow or shrink meanwhile. About half of that is
    // in the sums.
    const store::ResidentPages before = store::resident_pages_of(member.pid);
    const store::SharedPages pages = store::shared_pages_of(member.pid);
    const store::ResidentPages after = store::resident_pages_of(member.pid);
    member.resident = {middle(before.files, after.files), middle(before.anonymous, after.anonymous)};
    member.proportional = pages.proportional;
    member.with_others = pages.with_others;
    files.push_back({store::file_pages_of(member.pid), pages.files_proportional, pages.clean_alone});
  }
  const auto ended = [](const TreeMember& member) { return member.proportional == Bytes{}; };
  if (std::ranges::any_of(tree, ended)) return std::nullopt;
  const auto largest =
      static_cast<std::size_t>(std::ranges::max_element(files, {}, &FilePages::resident) - files.begin());
  tree[largest].proportional += shared_with_outsiders(files, largest);
  return tree;
}

// Returns whether no process wrote or gave up shared pages since the slots were read. Otherwise the parts of such a
// page were read at two times, and do not add up to one page.
bool is_consistent(const store::LedgerPage& page, const std::vector<TreeMember>& tree) {
  return std::ranges::all_of(tree, [&](const TreeMember& member) {
    const store::LedgerSlot* slot = slot_of(page, member.pid);
    return slot == nullptr || slot->diverged.load() == member.slot_diverged;
  });
}

// Returns what the children of `parent` hold only because it was in its pool at the fork (LedgerSlot::inherited). That
// is what it left to them, less what processes made by fork used of their parents. A child that runs another program
// holds none of it.
Bytes held_of(const store::LedgerPage& page, const std::vector<TreeMember>& tree, const TreeMember& parent) {
  const std::uint64_t generation = slot_of(page, parent.pid)->generation.load();
  Bytes used{}, held{};
  for (const TreeMember& member : tree) {
    const store::LedgerSlot* slot = slot_of(page, member.pid);
    if (slot == nullptr || slot->parent.load() == 0) continue;
    used += Bytes{slot->inherited_used.load()};
    const bool is_child = slot->parent.load() == static_cast<std::uint64_t>(parent.pid);
    if (!is_child || slot->generation.load() != generation) continue;
    if (!member.runs_a_program) held += member.resident.all();
  }
  return std::min(saturating_sub(Bytes{parent.slot_left}, used), held);
}

}  // namespace

std::optional<std::vector<TreeMember>> count_tree(const store::LedgerPage& page, std::int32_t root) {
  if (page.card.load() != 0) return std::vector<TreeMember>{};
  for (int looks = 1;; ++looks) {
    std::optional<std::vector<TreeMember>> tree = look_at_tree(page, root);
    if (!tree || looks == kMostLooks || is_consistent(page, *tree)) return tree;
  }
}

void note_count(store::LedgerPage& page, const std::vector<TreeMember>& tree,
                const std::vector<std::int32_t>& newcomers) {
  if (page.card.load() != 0) return;
  // A process that has ended left the figure of the pool that it had.
  for (store::LedgerSlot& slot : page.slots) {
    if (std::ranges::find(tree, slot.pid.load(), &TreeMember::pid) == tree.end()) slot.movable.store(0);
  }
  for (const TreeMember& member : tree) {
    store::LedgerSlot* const slot = slot_of(page, member.pid);
    if (slot == nullptr) continue;
    slot->inherited.store(member.slot_left > 0 ? held_of(page, tree, member).count : 0);
    slot->left_counted.store(member.slot_left);
    slot->diverged_counted.store(member.slot_diverged - std::min(member.slot_diverged, member.slot_copying));
    if (tree.size() == 1) slot->copies_expected.store(0);
  }
  if (tree.size() + newcomers.size() == 1) {
    tell(page, tree, tree.size());
    return;
  }
  // The processes were counted one after the other. What one took after its own count, another one may have given up
  // before, so the sum of the counts may be more than was ever there. What they hold now is read within microseconds.
  follow_tree(page, tree, newcomers);
}

namespace {

// `slot`: of a process that runs a program of its own; null: it has none. A child by fork keeps its slot when it begins
// to run another program, but that program has no pool yet.
bool has_a_pool(const store::LedgerSlot* slot) { return slot != nullptr && slot->parent.load() == 0; }

// Returns the programs that have no pool. A process makes room before it starts one, for as much as one took before.
std::vector<Program> programs_of(store::LedgerPage& page, const std::vector<TreeMember>& now) {
  std::vector<Program> programs;
  for (const TreeMember& member : now) {
    if (!member.runs_a_program || has_a_pool(slot_of(page, member.pid))) continue;
    store::raise_to(page.largest_program, member.resident.anonymous.count);
    programs.push_back({member.pid, member.resident.anonymous});
  }
  return programs;
}

}  // namespace

std::optional<TreeLook> follow_tree(store::LedgerPage& page, const std::vector<TreeMember>& tree,
                                    const std::vector<std::int32_t>& newcomers) {
  if (tree.size() + newcomers.size() < 2) return TreeLook{};
  std::vector<TreeMember> now = tree;
  for (TreeMember& member : now) {
    store::LedgerSlot* const slot = slot_of(page, member.pid);
    if (slot != nullptr) member.slot_rss = slot->rss.load();
    const store::ResidentPages before = std::exchange(member.resident, store::resident_pages_of(member.pid));
    if (member.resident.all() == Bytes{}) return std::nullopt;
    if (!has_a_pool(slot) && !member.runs_a_program && runs_a_program(member.pid))
      return std::nullopt;  // since the count
    member.proportional = saturating_sub(member.proportional + member.resident.all(), before.all());
    // A program that loads its libraries gives most of them back when it gets its pool, so no count would show them.
    if (!member.runs_a_program || has_a_pool(slot)) {
      member.files_taken = saturating_sub(member.resident.files, before.files);
    }
    member.copied = std::min(member.with_others, copies_of(member, before, slot));
    member.proportional += member.copied;
  }
  Bytes uncounted{};
  for (const std::int32_t pid : newcomers) {
    if (!runs_a_program(pid)) continue;
    TreeMember& member = now.emplace_back();
    member.pid = pid;
    member.resident.anonymous = member.proportional = store::resident_pages_of(pid).anonymous;
    member.runs_a_program = true;
    uncounted += member.proportional;
  }
  std::vector<Program> programs = programs_of(page, now);
  TreeLook look{};
  if (now.size() > 1) look = tell(page, now, tree.size(), uncounted);
  look.programs = std::move(programs);
  return look;
}

TreeWatch::TreeWatch(store::LedgerPage& page, std::int32_t root, Settings settings)
    : page_(page),
      root_(root),
      between_(settings.between_counts),
      holds_(page, settings.longest_turn),
      follower_(make_thread([this] { follow(); })),
      counter_(make_thread([this] { count(); })) {}

TreeWatch::~TreeWatch() {
  {
    const std::lock_guard lock(lock_);
    over_ = true;
  }
  changed_.notify_all();
  follower_.join();
  counter_.join();
}

void TreeWatch::follow() {
  for (Lock lock(lock_); !over_;) {
    if (is_due() && !due_) {
      due_ = true;
      changed_.notify_all();
    }
    changed_.wait_for(lock, holds_.is_near_the_edge() ? kBetweenLooksAtTheEdge : kBetweenLooks,
                      [this] { return over_; });
  }
}

void TreeWatch::count() {
  for (Lock lock(lock_); !over_;) {
    changed_.wait(lock, [this] { return over_ || due_; });
    if (due_) count_once(lock);
    due_ = false;
  }
}

// A compiler that a program starts has no slot, and takes 150 MiB within 0.2 s. To list the processes takes long if
// there are many threads, so that is done only if one started, and while some are not counted yet.
void TreeWatch::look_for_newcomers() {
  if (page_.card.load() != 0) return;  // count_tree() counts none
  const Clock::time_point began = Clock::now();
  if (began < next_list_) return;
  const std::int32_t newest = store::newest_pid();
  if (newest == newest_ && newcomers_.empty() && !unready_) return;
  newest_ = newest;
  Members found = members(page_, root_);
  newcomers_ = std::move(found.pids), unready_ = found.unready;
  drop_counted(newcomers_);
  next_list_ = began + (Clock::now() - began) * kRest;
}

void TreeWatch::drop_counted(std::vector<std::int32_t>& pids) const {
  std::erase_if(pids,
                [this](std::int32_t pid) { return std::ranges::find(tree_, pid, &TreeMember::pid) != tree_.end(); });
}

bool TreeWatch::is_due() {
  look_for_newcomers();
  const std::optional<TreeLook> look = follow_tree(page_, tree_, newcomers_);
  const unsigned signals = SignalForwarder::times_received();
  if (std::exchange(signals_, signals) != signals) holds_.let_all_go_on();
  if (look) holds_.look(look->programs, look->held);
  if (!look) holds_.let_overdue_go_on();
  end_if_too_little();
  if (page_.counts_asked.load() > page_.counts_made.load() || has_newcomer(page_, tree_)) return true;
  const Clock::time_point now = Clock::now();
  if (!look || now >= next_count_) return true;
  // Only a count tells whether pages of files that were taken pass the budget, or the tree had them.
  const Bytes budget{page_.budget.load()};
  const bool may_pass = budget > Bytes{} && look->taken > kWorthACount && look->held > budget;
  return (look->copied > kWorthACount || may_pass || !newcomers_.empty()) && now >= least_rest_;
}

void TreeWatch::end_if_too_little() {
  const std::optional<ProgramHolds::TooLittle> found = holds_.too_little();
  if (!found || has_ended_it_) return;
  page_.too_little.set(fmt::format(
      "{} (process {}) has no pool, so none of its {} can be moved out, and it needs more; all processes together hold "
      "{} of the budget of {}, and the pools have nothing left to move out; so the run was ended",
      store::name_of(found->pid), found->pid, to_string(found->resident), to_string(found->held),
      to_string(Bytes{page_.budget.load()})));
  page_.least_for_programs.store(found->needed.count);
  has_ended_it_ = true;
  store::kill_tree(root_);
}

void TreeWatch::count_once(Lock& lock) {
  const std::uint64_t asked = page_.counts_asked.load();
  const std::chrono::nanoseconds before = processor_time();
  lock.unlock();
  std::optional<std::vector<TreeMember>> counted = count_tree(page_, root_);
  lock.lock();
  next_count_ = least_rest_ = Clock::now();
  if (!counted) return;  // is_due() asks again at the next look
  tree_ = std::move(*counted);
  drop_counted(newcomers_);
  note_count(page_, tree_, newcomers_);
  page_.counts_made.store(asked);
  const std::chrono::nanoseconds took = processor_time() - before;
  next_count_ += std::max<Clock::duration>(between_, took * kRest);
  least_rest_ += took * kLeastRest;
}

}  // namespace ullage::cli
