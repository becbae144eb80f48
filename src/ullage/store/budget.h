// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much of the stated bytes is the pool's. The person states what the operating system shows of the whole process,
// so the pool gets what is left beside everything else the process holds:
//
//   stated  |== pool ==================|== outside: libraries, stacks, JIT code, decoders ==|= margin =|
//                                        the larger of what is measured and what is set aside
//
// Set aside, at first: torch holds about 72 MiB when the code that it ran as it was loaded is let go (kTorchAlone;
// runtime/pool/library_pages.h). In its first steps it touches 22 to 45 MiB more (library pages, oneDNN's generated
// code), whatever the batch; so 48 MiB are set aside from the start instead of being missed later. In Python the rest
// of importing torch and the first optimizer take 117 MiB (sympy is the largest). Margin: what may come between two
// looks, and the kernel's own counting error (it counts pages per processor and adds up in batches of 32 to 64).
//
// What is set aside follows what is seen. After the first steps it is the most that stood outside in a later one.
// Before a request is refused, what is set aside and not used is lent to the pool: the pool gives way when the outside
// grows.

#include "ullage/base/bytes.h"
#include "ullage/store/store.h"
#include "ullage/store/tree.h"

#include <atomic>
#include <functional>

namespace ullage::store {

class Budget final : public Limit {
 public:
  static constexpr Bytes kTorchAlone = 72_MiB;  // for plans from files; a run measures its own
  static constexpr Bytes kWarmUp = 48_MiB;
  static constexpr Bytes kWarmUpInPython = 124_MiB;
  static constexpr Bytes kMargin = 8_MiB;
  // What a child by fork copies of its parent's pages in its first moments, in Python: every look at an object writes
  // its count of references. Measured: 7 to 10 MiB in workers of a DataLoader.
  static constexpr Bytes kForkedInPython = 12_MiB;
  static constexpr std::uint64_t kFirstSteps = 2;  // libraries warm up in them
  // Code that is read in as a process ends. Measured: 7 to 10 MiB; 18 in Python, on a kernel that keeps files in huge
  // pages.
  static constexpr Bytes kAtExit = 24_MiB;
  // What another run may hold more outside the pool than this one, by chance.
  static constexpr Bytes kLeastAllowance = 2_MiB;

  // `stated` of zero: unlimited. `outside_start`: what the process holds now, before the pool has a byte. `warm_up`:
  // what it will take in its first steps. `resident`: resident bytes of the process now. `tree` outlives the budget;
  // null: the process is alone.
  Budget(Bytes stated, Bytes outside_start, Bytes warm_up, std::function<Bytes()> resident, Tree* tree);

  // The least stated bytes with which a pool of nothing can start.
  static Bytes least(Bytes outside_start, Bytes warm_up) { return outside_start + warm_up + kMargin; }

  Bytes resident_limit(Bytes pool_resident) override;
  Bytes missing(Bytes pool_resident) override;
  bool recount() override { return !unlimited() && tree_ != nullptr && tree_->count(); }
  void lease(Bytes bytes) override {
    if (tree_ != nullptr) tree_->lease(bytes);
  }
  void end_lease(Bytes leased, Bytes taken) override {
    if (tree_ != nullptr) tree_->end_lease(leased, taken);
  }

  // What the process held outside the pool when the limit was asked for last.
  Bytes outside() const { return Bytes{outside_.load()}; }
  // The most it ever was when the limit was asked for.
  Bytes outside_peak() const { return Bytes{outside_peak_.load()}; }
  // What is set aside for the outside at least, plus charges. These come on top of what stood there when the first of
  // them was made.
  Bytes expected_outside() const;
  // What was set aside at the start.
  Bytes expected_at_start() const { return expected_at_start_; }

  // The pool needs `at_once` bytes at this moment, or did since this was called last. Returns the least stated bytes
  // that this run could have done with so far: the most that the pool and what it cannot displace ever needed together.
  Bytes note_least(Bytes at_once);

  // A step of the program ended.
  void end_step();
  // Lends the pool what is set aside and not used. False: nothing is.
  bool lend();

  // Bytes that someone outside the pool is about to take, beside what stands there, and later returns.
  void charge(Bytes bytes);
  void discharge(Bytes bytes);
  // Planning begins or ends. What it takes is given up before a request is refused: meanwhile the least counts what
  // stood beside the pool before.
  void planning(bool begins);

  Bytes stated() const { return Bytes{stated_.load()}; }
  bool unlimited() const { return stated() == Bytes{}; }
  // In a child by fork: its libraries are its parent's, and have what they need.
  void expect_nothing() { set_aside_.store(0); }
  // From the next look on.
  void restate(Bytes stated) { stated_.store(stated.count); }

 private:
  // Measures what stands outside the pool. Returns all that the pool may not have of the stated bytes.
  Bytes beside(Bytes pool_resident);
  // What other processes of the tree hold.
  Bytes others() const;
  // What a request that is refused could not have had: what stands outside the pool or is charged, the margin, and what
  // others hold, without what is only expected of them.
  Bytes needed_beside(Bytes outside, Bytes others) const;
  // What stood outside when the first charge was made, plus the charges; zero where nothing is charged.
  Bytes charged_outside() const;

  std::atomic<std::uint64_t> stated_;
  std::atomic<std::uint64_t> set_aside_;
  const Bytes expected_at_start_;
  const std::function<Bytes()> resident_;
  Tree* const tree_;
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> outside_at_charge_{0};  // zero: nothing is charged
  std::atomic<std::uint64_t> outside_;
  std::atomic<std::uint64_t> outside_peak_{0};
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> outside_of_step_{0};  // the most in this step, without charges
  std::atomic<std::uint64_t> needed_lately_{0};    // the most beside the pool since note_least(), unused bytes aside
  std::atomic<std::uint64_t> beside_last_{0};      // as needed_lately_, when note_least() was called before planning
  std::atomic<std::uint64_t> least_;
  std::atomic<bool> planning_{false};
  bool follows_steps_ = false;  // of end_step(): what is set aside is what a step showed
};

}  // namespace ullage::store
