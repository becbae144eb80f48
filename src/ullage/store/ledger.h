// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ledger: an account in shared memory (a memfd) that the launcher makes, the runtime writes and the launcher reads.
// It outlives the processes that write it, so there are a summary and a report even if the kernel killed the program.
//
//   launcher: Ledger::create -> fd inherited, its name in ULLAGE_LEDGER -> wait -> read slots
//   program:  Ledger::attach_from_environment -> claim a slot -> store counters as they change
//
// Every field that changes is an atomic word, or a text whose length is one. There are no locks, because a writer may
// die at any instruction. Sizes are bytes and times microseconds unless a comment says otherwise. The layout is private
// to one version of Ullage. To report a new figure, add a field and raise kLayout.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/store/driver_calls.h"
#include "ullage/store/tree.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::store {

// A text that one process writes and another one reads later. A slot's texts are read after the slot's process has
// ended, the page's texts after the launcher has filled the page. The length is stored last, so a text is empty if its
// writer died while writing it. Text beyond N bytes is cut off.
template <std::size_t N>
struct SharedText {
  std::atomic<std::uint32_t> length{0};
  std::array<char, N> text{};

  void set(std::string_view value) {
    const std::size_t n = value.size() < N ? value.size() : N;
    length.store(0, std::memory_order_release);
    for (std::size_t i = 0; i < n; ++i) text[i] = value[i];
    length.store(static_cast<std::uint32_t>(n), std::memory_order_release);
  }
  std::string get() const {
    const std::size_t n = length.load(std::memory_order_acquire);
    return std::string(text.data(), n < N ? n : N);
  }
};

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free);

// The figures of one process of the program's tree. The process writes them. The launcher writes `others`,
// `others_guessed`, `rss_seen`, `inherited` and all that end in `counted`, and lowers `copies_expected`. If the budget
// is a card's, the figures of `rss` and `outside` are bytes of the card.
struct LedgerSlot {
  static constexpr std::size_t kStepTimes = 1024;

  std::atomic<std::int32_t> pid{0};          // 0: free; below 0: being wiped. A dead owner's slot keeps its figures
  std::atomic<std::uint32_t> refused{0};     // requests that were refused (OutOfMemoryError)
  std::atomic<std::uint32_t> infeasible{0};  // 1: the runtime would not start or could not go on; `message` says why
  std::atomic<std::uint32_t> ended{0};       // 1: the process ended normally, so its figures are final

  Word rss{0};             // resident bytes when last measured, and what the pool took since
  Word others{0};          // resident bytes of the tree's other processes as last counted, shared pages once
  Word others_guessed{0};  // the part of `others` that may be pages which the tree had already; a count tells
  Word rss_counted{0};     // rss when the launcher counted last
  Word leased{0};          // bytes that the process is about to take (Tree::lease)
  Word rss_seen{0};        // its resident bytes at the launcher's last look, which are in the `others` of the others
  Word coming_to{0};       // its resident bytes once it has touched what it announced (Tree::make_way); 0: nothing
  Word coming_until{0};    // when the announcement ends, in ms of the steady clock
  Word lacking{0};         // bytes without which a request is about to be refused; the other processes give way to it
  Word movable{0};         // bytes of its pool that it would evict for others that lack bytes (Pager::movable())
  Word looks_begun{0};     // looks of its watch, which makes the pool give way. 0: it has no watch
  Word looks_ended{0};
  Word followed{0};         // 1: its ops are followed, so `movable` is known
  Word forked_at{0};        // when it last forked or was made by fork, in ms of the steady clock; 0: never
  Word parent{0};           // the process that made it by fork; 0: it was not made by fork
  Word copies_expected{0};  // bytes that it is still expected to copy of the pages shared by the fork at forked_at
  // Bytes of pages shared by fork that this process wrote or gave up. Until then these pages counted once, as this
  // process's. From then on they count as the other processes' too, whose sum grew by as many bytes.
  Word diverged{0};
  // The part of `diverged` that ops in flight will write, so the pages may not be copied yet. An op adds to this first.
  Word copying{0};
  Word diverged_counted{0};  // the rest of diverged, when the launcher counted last
  // The part of `diverged` that was storages of a process that was not made by fork. It begins anew at a fork before
  // which it had grown. Then the children get a new `generation`: those that hold these bytes alone.
  Word left_to_children{0};
  Word left_counted{0};      // left_to_children when the launcher counted last
  Word generation{0};        // of the children that it forks now; in a child: the one that it is of
  Word inherited{0};         // what its children held of left_to_children when the launcher counted last
  Word inherited_used{0};    // bytes of its parent's storages that a process made by fork has used
  Word unseen_children{0};   // 1: a child found no slot, so nobody knows what it uses
  Word rss_peak{0};          // the larger of the peak of rss and VmHWM as last read
  Word outside{0};           // resident bytes outside the pool
  Word outside_expected{0};  // bytes reserved for the outside at the start
  Word outside_at_peak{0};   // outside when the highest rss was measured
  Word pool_live{0};         // live bytes of the pool
  Word pool_live_peak{0};
  Word pool_resident{0};  // resident bytes of the pool
  Word pool_resident_peak{0};
  Word last_request{0};  // bytes of the last request that was refused
  Word given_back{0};    // bytes that the watch had the pool give back to the system, to stay within the limit
  Word over_budget{0};   // most bytes by which rss_peak passed the budget; 0: never

  // The pager's moves.
  Word spilled{0};              // bytes spilled
  Word restored{0};             // bytes read back
  Word spill_wait_us{0};        // time that the program's threads waited for moves and for recomputing on demand
  Word spill_background_us{0};  // time that the background thread spent on moves
  Word spilled_now{0};          // bytes that are spilled at present (from a card: to host memory too)
  Word spilled_peak{0};
  Word cleaned{0};             // bytes that the background thread wrote ahead
  Word saved_writes{0};        // bytes spilled without writing, because they had not changed since they came back
  Word page_faults_healed{0};  // unannounced accesses: page faults at evicted storages (PagerCounts::faults)
  Word least_budget{0};        // the least budget so far, without refused requests; 0: not known
  Word refused_least{0};       // the least budget if the last refused request is counted as served
  Word unmovable{0};           // bytes that no eviction frees: slabs, and one op's inputs outside pool and mapped files
  Word files_let_go{0};        // bytes of mapped files that were let go, to be read again when they are touched

  // The driver's part, if the budget is a card's.
  Word counted_by{0};                             // who counts the budget's bytes. 1: the driver, 2: it and NVML
  Word locked{0};                                 // host memory that is locked for evicted tensors; none is unlocked
  std::array<Word, kDriverCalls> driver_calls{};  // so far
  std::array<Word, kDriverCalls> plan_calls{};    // within the last step that ran as planned after another such step
  Word plan_calls_away{0};                        // bytes that were spilled or dropped in that step
  Word plan_calls_back{0};                        // bytes that were read back in it

  // The take, if one is recorded.
  Word recorded{0};           // 1: the file was written
  Word recorded_steps{0};     // whole steps that are sure to be in it
  Word stopped_at_border{0};  // 1: the process ended itself after LedgerPage::stop_after steps

  // The plan, if the run made or was given one. Times are for one step.
  Word plans{0};                 // plans that were followed; above 1: a new one was made after deviations
  Word plan_adopted_at_step{0};  // the step at which the first was adopted, from 1 on
  Word plan_peak{0};             // most bytes of tensors present at once, as planned
  Word plan_peak_seen{0};        // the same as counted in steps that ran as planned
  Word plan_step_us{0};          // the observed step that the plan was made for
  Word plan_overhead_us{0};      // what the plan adds to it
  Word plan_bound_us{0};         // no plan costs less; 0 also if it was not computed
  Word plan_recomputes{0};       // ops that a step runs again
  Word plan_spills{0};           // storages that a step spills
  Word plan_steps{0};            // steps that ran as planned from end to end
  Word plan_deviations{0};       // times that the program left the plan within a step
  Word plan_rescues{0};          // storages that were evicted or recomputed on demand while the plan was followed
  Word recomputed_ops{0};        // in all, planned or on demand
  Word recompute_us{0};
  Word tape_peak{0};  // most bytes that the tape took outside the pool

  Word threads{0};  // threads that torch computes with; 0: not known
  Word steps{0};
  Word half_ops{0};  // ops that ran in bf16, if LedgerPage::counts_half
  // If LedgerPage::casts_if_needed: why steps were cast. 1: no exact plan fits. 2: the exact plan costs too much.
  // 0: none was cast.
  Word cast_why{0};
  Word cast_from{0};      // the first step in bf16, from 1 on; 0: none
  Word cast_until{0};     // the first step after it that is exact again; 0: none
  Word exact_step_us{0};  // the shortest step timed under the exact plan; 0: none was timed
  Word cast_step_us{0};   // the shortest step timed in bf16; 0: none was timed
  std::array<std::atomic<std::uint32_t>, kStepTimes> step_us{};  // ring: step n at n % kStepTimes

  SharedText<64> last_op;         // the op of the last refused request
  SharedText<1024> message;       // the last refusal or warning, or the reason for `infeasible`, in words
  SharedText<256> spill_message;  // why spilling failed last, in words
  SharedText<256> count_note;     // why NVML does not count the budget's bytes; empty: it does, or there is no card
  SharedText<256> lock_failure;   // why host memory could not be locked last; empty: all was
  SharedText<512> changes;        // options of a shipped program that change its results: lines "CLASS OPTION"
  SharedText<64> state_sha256;    // hash of the final state (shipped programs only)
};

struct LedgerPage {
  static constexpr std::uint64_t kMagic = 0x656761'6c6c55ull;  // "Ullage"
  static constexpr std::uint32_t kLayout = 24;
  static constexpr std::size_t kSlots = 32;

  std::uint64_t magic = kMagic;
  std::uint32_t layout = kLayout;
  std::uint32_t size = 0;      // sizeof(LedgerPage), to catch a mix of builds
  Word budget{0};              // budget of the whole tree; 0: unlimited, or a card's that is not worked out yet
  Word card{0};                // number of the budgeted card plus 1; 0: the budget is the process's memory
  Word host_memory{0};         // most bytes of locked host memory for tensors evicted from the card
  Word tree_peak{0};           // most resident bytes of the tree's processes together; 0: only one process, or a card
  Word largest_program{0};     // most bytes that one program without a pool has held
  Word room_for_programs{0};   // bytes that pools leave to programs without a pool, or have to make room for
  Word pressure{0};            // 1: some pool of the tree is under pressure (Pager::under_pressure())
  Word programs_grow{0};       // programs without a pool that grow now
  Word turn{0};                // who took a large block last, and until when others wait for that (make_way())
  Word programs_held_us{0};    // for how long the launcher stopped such programs until there was room, in all
  Word least_for_programs{0};  // a budget that such programs need at least; set if the run was ended because of them
  SharedText<512> too_little;  // why, in words
  Word counts_asked{0};        // how often processes have asked the launcher to count the tree again
  Word counts_made{0};         // how many of these requests the launcher's last count has answered
  Word spill_limit{0};         // most bytes that a spill file may take; 0: nothing is spilled and the folder is empty
  SharedText<1024> spill_folder;
  SharedText<1024> record_file;           // the file for the take; empty: nothing is recorded
  std::atomic<std::int32_t> recorder{0};  // pid of the process that records (runtime/start.cpp)
  Word stop_after{0};                     // whole steps after which that process writes the take and ends; 0: never
  SharedText<1024> plan_file;             // a plan to begin with, an absolute path; empty: none
  Word no_plan{0};                        // 1: no plans; the pager decides on demand
  Word quiet{0};                          // 1: nothing is printed about what goes well
  Word counts_half{0};                    // 1: ops that run in bf16 are counted
  Word casts_if_needed{0};                // 1: the runtime decides which steps are cast (runtime/plan/cast_choice.h)
  SharedText<512> rehearsal;              // LedgerSettings::rehearsal
  std::array<LedgerSlot, kSlots> slots;
};

// The fields that the launcher writes into the page before the program starts.
struct LedgerSettings {
  Bytes budget;                  // zero: unlimited, or a card's, which the runtime works out and writes into the page
  std::string spill_folder;      // empty: nothing is spilled
  Bytes spill_limit;             // zero: nothing is spilled
  std::string record_file{};     // the file for the take, an absolute path; empty: nothing is recorded
  std::uint64_t stop_after = 0;  // whole steps after which the recorded process ends; 0: never
  std::string plan_file{};       // a plan to begin with, an absolute path; empty: none
  bool no_plan = false;          // no plans; the pager decides on demand
  bool quiet = false;            // nothing is printed about what goes well
  bool counts_half = false;      // ops that run in bf16 are counted
  bool casts_if_needed = false;  // the runtime decides which steps are cast
  // For shipped programs only (rehearsal): the sizes at which the program does a few steps on made-up data, in place of
  // its real work. "auto", or the values of each knob: "batch=2,3,4;size=32,48,64". Empty: it does its real work.
  std::string rehearsal{};
  std::optional<unsigned> card{};  // the budgeted card; none: the budget is the process's memory
  Bytes host_memory{};             // if a card is budgeted: most bytes of locked host memory for its evicted tensors
};

// A mapping of the shared page. Move-only. The destructor unmaps the page, but its descriptor stays open until the
// process ends, because children may still attach through it.
class Ledger final {
 public:
  // The environment variable that names the page: "FD:PID", or "FD" alone. FD is the inherited descriptor. PID is the
  // launcher, which holds FD open too: programs whose parent closed the descriptor open /proc/PID/fd/FD.
  static constexpr const char* kVariable = "ULLAGE_LEDGER";

  // Makes a new page with these settings (the launcher). BadArgument if a text does not fit into the page. System if
  // the kernel refuses the page.
  static Result<Ledger> create(const LedgerSettings& settings);
  // Attaches to the page that the environment names (the program). NotFound if the variable is not set (a plain run).
  // BadArgument if it names no descriptor. BadFile if the descriptor holds no ledger, or one of another build.
  // System if the page cannot be mapped.
  static Result<Ledger> attach_from_environment();

  // Returns the value of kVariable for the program. `launcher`: the process that holds the page until the end.
  std::string environment_value(std::int32_t launcher) const;

  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  LedgerPage& page() { return *page_; }
  const LedgerPage& page() const { return *page_; }
  int fd() const { return fd_; }

  // Claims a slot for this process: the one that it has from an earlier call or from before an exec, else a free one.
  // If there is neither, wipes and takes the one with the lowest peak of those whose process has ended. Returns null if
  // living processes have all slots.
  LedgerSlot* claim_slot();

 private:
  static Result<Ledger> attach(int fd, const std::string& where);
  Ledger(LedgerPage* page, int fd) : page_(page), fd_(fd) {}
  LedgerPage* page_ = nullptr;
  int fd_ = -1;
};

// Does the slot belong to a process that has not ended?
bool is_alive(const LedgerSlot& slot);

// What the tree's other processes hold, as seen by the process that has the slot `own` (null: it has none).
// Others::held is the sum of:
// - the launcher's last count (others);
// - for each other process: its growth since that count (rss - rss_counted), and the bytes that it is about to take
//   (leased) or to touch (coming_to);
// - for each other process: the bytes that it lacks (lacking). If this process lacks some too, only those of the slots
//   before its own: of several that lack bytes, the one whose slot comes first gets them. If each counted the others,
//   none would be served;
// - for each process, the own one too: the copies of shared pages that are expected (copies_expected), and those made
//   since that count (diverged - diverged_counted);
// - the room for programs that have no pool (room_for_programs).
Others others_of(const LedgerPage& page, const LedgerSlot* own);
// The part of Others::held that children of the process hold only because it was in the process's pool at the fork.
Bytes inherited_from(const LedgerSlot& own);
// The processes that have a slot, without the one whose slot is `own`.
std::uint64_t processes_beside(const LedgerPage& page, const LedgerSlot* own);

// How long make_way() waits at the most: for looks of the watches, and in all.
struct Patience {
  std::chrono::milliseconds looks{}, all{};
};
// For a process that is about to touch `bytes` outside its pool: announces that in `own` for a quarter of a second, or
// for up to a second more if the block is large. `held` measures what it holds now. Of several threads' announcements
// the one that reaches highest stands. If the budget has no room for the bytes and `margin`, waits until the watches of
// all have looked and their pools have given way.
//
// If there is still no room for a block of kTakenAnew or more, processes take turns. Otherwise each of several would
// take a part of what it needs, and none would come to where it gives memory back. The process that went on last has
// the turn until half a second after it has filled its block. Another one waits for room or for the end of that turn.
//
// Takes no lock. Returns false if a watch was still in the midst of its look at the end: its pool may have more to
// give.
bool make_way(LedgerPage& page, LedgerSlot& own, const std::function<Bytes()>& held, Bytes bytes, Bytes margin,
              Patience most);
// The heap of glibc has a block of this size or larger from the kernel, unless it finds one among what was freed
// (DEFAULT_MMAP_THRESHOLD_MAX).
inline constexpr Bytes kTakenAnew = 32_MiB;
// What the tree's other processes hold for certain: Others::held without what is expected, announced or guessed, and
// without what ops are copying.
Bytes held_for_certain(const LedgerPage& page, const LedgerSlot& own);
// Does the tree pass its budget for certain if the process holds `held`?
bool passes_budget(const LedgerPage& page, const LedgerSlot& own, Bytes held);
// Has another process than that of `own` its turn? Then it may give memory back soon.
bool others_have_a_turn(const LedgerPage& page, const LedgerSlot* own);
// Ends the turn of the process, if it has it.
void end_turn(LedgerPage& page, const LedgerSlot& own);
// Ends what the processes beside `own` announced by make_way().
void forget_announced(LedgerPage& page, const LedgerSlot* own);

// Waits until no process is expected to copy shared pages any more and no room is kept for programs. Waits also until
// the watch of each other process has looked once from begin to end, so that it has seen what is lacking and has given
// way; for that a third of `most` at the most. Then asks the launcher to count the tree, and waits for the count. All
// this takes at most `most`. Returns false if no count has come by then. `own`: the caller's slot; null: it has none.
bool await_count(LedgerPage& page, const LedgerSlot* own, std::chrono::milliseconds most);

// Raises `peak` to `value` if it is lower.
inline void raise_to(Word& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace ullage::store
