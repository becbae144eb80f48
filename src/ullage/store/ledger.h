// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ledger: one page-sized account, in a memfd made by the launcher, that the runtime writes and the launcher reads.
// It outlives the processes that write it, so the summary and the report exist even when the kernel killed the program.
//
//   launcher: Ledger::create -> fd inherited, its name in ULLAGE_LEDGER -> wait -> read slots
//   program:  Ledger::attach_from_environment -> claim a slot -> store counters as they change
//
// Every field is an atomic word or text guarded by one; there are no locks, because a writer may die at any
// instruction. All sizes are bytes, all times microseconds. The layout is private to one version of Ullage (kLayout).

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::store {

// Text that one process writes and another reads after the writer ended: a length published last.
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

// What one process of the program's tree writes of itself. Where the budget is a card's, `rss`, `rss_peak` and
// `outside` are bytes of the card.
struct LedgerSlot {
  static constexpr std::size_t kStepTimes = 1024;

  std::atomic<std::int32_t> pid{0};          // 0: free; below 0: being wiped. A dead owner's slot keeps its figures
  std::atomic<std::uint32_t> refused{0};     // requests that were refused (OutOfMemoryError)
  std::atomic<std::uint32_t> infeasible{0};  // 1: the runtime would not start; `message` says why
  std::atomic<std::uint32_t> ended{0};       // 1: the process said goodbye (its figures are final)
  std::atomic<std::uint32_t> pager{0};       // 1: moving was armed at some time

  Word rss{0};               // resident bytes at the last look
  Word others{0};            // resident bytes of the tree's other processes, pages that are shared counted once ...
  Word rss_counted{0};       // ... and rss when the launcher counted them
  Word leased{0};            // bytes that it is about to take
  Word forked_at{0};         // milliseconds of the steady clock: when it last forked or was made by fork; 0: never
  Word made_by_fork{0};      // 1: it was
  Word copies_expected{0};   // bytes: what it is about to write to of the pages that it shares since
  Word diverged{0};          // bytes of pages shared with a fork that this process wrote or gave up: the other has them
  Word diverged_counted{0};  // ... and when the launcher counted
  Word rss_peak{0};          // VmHWM at the last look
  Word outside{0};           // of rss, what is not the pool
  Word outside_expected{0};  // ... and what is set aside for that at least
  Word outside_at_peak{0};   // the same at the look that saw the highest rss
  Word pool_live{0};         // bytes asked for and not given back
  Word pool_live_peak{0};
  Word pool_resident{0};  // bytes the pool holds from the device
  Word pool_resident_peak{0};
  Word last_request{0};  // bytes of the last request that was refused
  Word given_back{0};    // bytes of idle pages given back because the outside grew
  Word over_budget{0};   // most bytes by which rss_peak passed the budget; 0: never

  // What was moved between memory and the spill file.
  Word spilled{0};              // bytes moved out
  Word restored{0};             // bytes moved back
  Word spill_wait_us{0};        // time that the program's threads waited for moving
  Word spill_background_us{0};  // time of moving done beside the computing
  Word spilled_now{0};          // bytes that stand in the spill file, of a card in host memory too
  Word spilled_peak{0};
  Word cleaned{0};             // bytes written out ahead of need; their pages are free to take
  Word saved_writes{0};        // bytes not written again, as they had not changed since they last were
  Word page_faults_healed{0};  // accesses to what was moved out that no op announced
  Word floor{0};               // the least stated bytes that this run could have done with; 0: not known
  Word unmovable{0};           // bytes of storages that cannot move: small ones and those of others

  // Of the trace, where one is asked for.
  Word recorded{0};           // 1: the file was written
  Word recorded_steps{0};     // whole steps that are sure to be in it
  Word stopped_at_border{0};  // 1: the process ended itself there, as it was asked to

  // Of the plan, where the run made or was given one; times are of a step.
  Word plans{0};                 // that were adopted; above 1: made again after a deviation
  Word plan_adopted_at_step{0};  // the first
  Word plan_peak{0};             // most bytes of tensors present at once, as planned
  Word plan_peak_seen{0};        // and as counted in steps that ran as planned
  Word plan_overhead_us{0};
  Word plan_bound_us{0};    // no plan costs less; 0 also where it was not worked out
  Word plan_recomputes{0};  // ops that a step runs again
  Word plan_spills{0};      // storages that a step spills
  Word plan_steps{0};       // steps that ran as planned from end to end
  Word plan_deviations{0};  // times that the program did something else
  Word plan_rescues{0};     // storages that were evicted or recomputed on demand while the plan was followed
  Word recomputed_ops{0};   // in all, planned or on demand
  Word recompute_us{0};
  Word tape_peak{0};  // bytes that the tape took outside the pool, at most

  Word threads{0};  // that torch computes with; 0: not known
  Word steps{0};
  std::array<std::atomic<std::uint32_t>, kStepTimes> step_us{};  // ring: step n at n % kStepTimes

  SharedText<64> last_op;         // the op of the last refused request
  SharedText<512> message;        // the last refusal or warning in words
  SharedText<256> spill_message;  // why moving failed last, in words
  SharedText<64> state_sha256;    // the shipped programs' final state
};

struct LedgerPage {
  static constexpr std::uint64_t kMagic = 0x656761'6c6c55ull;  // "Ullage"
  static constexpr std::uint32_t kLayout = 9;
  static constexpr std::size_t kSlots = 32;

  std::uint64_t magic = kMagic;
  std::uint32_t layout = kLayout;
  std::uint32_t size = 0;  // sizeof(LedgerPage), to catch a mix of builds
  Word budget{0};          // stated bytes of the whole tree; 0: unlimited, or of a card and not worked out yet
  Word card{0};            // number of the card whose bytes the budget is of, plus 1; 0: the process's memory
  Word host_memory{0};     // most bytes of locked host memory for what leaves the card
  Word tree_peak{0};       // most resident bytes of the tree's processes together; 0: there was one alone, or a card
  Word counts_asked{0};    // how often a process wanted the tree counted at once ...
  Word counts_made{0};     // ... and how many of these wishes the last count has met
  Word spill_limit{0};     // the most bytes that spill files may take; 0: nothing is moved and the folder is empty
  SharedText<1024> spill_folder;
  SharedText<1024> record_file;           // where the trace goes; empty: nothing is recorded
  std::atomic<std::int32_t> recorder{0};  // the process that records: the first that asked to
  Word stop_after{0};                     // whole steps after which that process writes the trace and ends; 0: never
  SharedText<1024> plan_file;             // a plan to begin with, an absolute path; empty: none
  Word no_plan{0};                        // 1: everything is decided on demand
  Word quiet{0};                          // 1: of what goes well nothing is said
  SharedText<512> rehearsal;              // of a shipped program: the sizes to try instead of working; empty: it works
  std::array<LedgerSlot, kSlots> slots;
};

// What the launcher writes in before the program starts.
struct LedgerSettings {
  Bytes budget;                  // zero: unlimited; of a card: the runtime works it out and writes it into the page
  std::string spill_folder;      // empty: nothing is moved
  Bytes spill_limit;             // zero: nothing is moved
  std::string record_file{};     // where the trace of the program goes, an absolute path; empty: nothing is recorded
  std::uint64_t stop_after = 0;  // whole steps after which the recorded process ends; 0: never
  std::string plan_file{};       // a plan to begin with, an absolute path; empty: none
  bool no_plan = false;          // everything is decided on demand
  bool quiet = false;            // of what goes well nothing is said
  // Of shipped programs alone: "auto", or the values of each knob: "batch=2,3,4;size=32,48,64". Empty: work.
  std::string rehearsal{};
  std::optional<unsigned> card{};  // whose bytes the budget is of; none: the process's memory
  Bytes host_memory{};             // of a card: most bytes of locked host memory for what leaves it
};

// A mapping of the shared page. Move-only. Unmaps at the end; the descriptor stays open until the process ends, for
// children that are still to attach.
class Ledger final {
 public:
  // Environment: "FD:PID", the inherited descriptor and the launcher that holds it too; "FD" alone will do. The PID
  // serves programs whose parent closed the descriptor: they take it from /proc/PID/fd/FD.
  static constexpr const char* kVariable = "ULLAGE_LEDGER";

  // Launcher: a new page with the settings written in. BadArgument for a text that the page has no room for.
  static Result<Ledger> create(const LedgerSettings& settings);
  // Program: the page named by the environment. NotFound when the variable is not set (a plain run), BadFile when the
  // descriptor holds no ledger or one of another build.
  static Result<Ledger> attach_from_environment();

  // What kVariable must say in the environment of the program; `launcher` is the process that holds the page until the
  // end.
  std::string environment_value(std::int32_t launcher) const;

  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  LedgerPage& page() { return *page_; }
  const LedgerPage& page() const { return *page_; }
  int fd() const { return fd_; }

  // Claims a slot for this process: the one it has (an earlier call, or before an exec), else a free one, else that of
  // a process which ended or is gone, the one with the lowest peak first, wiped. Null when all are taken by the living.
  LedgerSlot* claim_slot();

 private:
  static Result<Ledger> attach(int fd, const std::string& where);
  Ledger(LedgerPage* page, int fd) : page_(page), fd_(fd) {}
  LedgerPage* page_ = nullptr;
  int fd_ = -1;
};

// A process writes into this slot and has not ended.
bool is_alive(const LedgerSlot& slot);

// Resident bytes of the tree's other processes, for the one that writes `own` (null: for one without a slot): what the
// launcher counted last, and by how much those that write into the ledger grew since.
Bytes others_of(const LedgerPage& page, const LedgerSlot* own);
// The part of others_of() that is expected and not there yet: copies of pages that a fork shares.
Bytes expected_of(const LedgerPage& page);

// Waits until children by fork have copied what they are expected to, has the launcher count the tree, and waits until
// it has. False: it did not within `most`.
bool await_count(LedgerPage& page, std::chrono::milliseconds most);

// Raises `peak` to `value` if it is below.
inline void raise_to(Word& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace ullage::store
