// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out how many of the stated bytes the pool may hold. The budget covers all that the operating system counts for
// the process, so the pool gets what everything else leaves:
//
//   stated  |== pool ==================|== outside: libraries, stacks, JIT code, decoders ==|= margin =|
//                                        the larger of what is measured and what is reserved
//
// At the start torch holds about 72 MiB, after the code that ran only while it was loaded was given back (kTorchAlone;
// runtime/pool/library_pages.h). These bytes are measured. In its first steps torch touches 22 to 45 MiB more (library
// pages, code that oneDNN generates), whatever the batch size. So kWarmUp, 48 MiB, is reserved on top from the start.
// In Python kWarmUpInPython, 64 MiB, is reserved in its place: the rest of importing torch and the first steps of
// convolutions, attention and an LSTM took 59 MiB. If an optimizer will import torch's compiler
// (preload/defer_compiler.py), kCompiler is added. That import took 70 to 76 MiB; 124 MiB for both have been enough.
//
// The margin covers growth between two measurements and the kernel's counting error. The kernel counts pages for each
// processor, and adds these counts up in batches of 32 to 64. The bytes that other processes of the tree hold are kept
// free too. Pages of mapped files (weights) come on top of the outside in the drawing. Most of them can be let go
// (file_pages.h), so no reserve follows them; the pool leaves room for those that are in memory.
//
// Later the reserve follows what is measured. After the third step it is the most that was outside in that step, and
// each later step can only raise it.
// Before a request is refused, the unused part of the reserve is lent to the pool. If the outside grows after that, the
// pool gives bytes back.

#include "ullage/base/bytes.h"
#include "ullage/store/store.h"
#include "ullage/store/tree.h"

#include <atomic>
#include <functional>

namespace ullage::store {

class Budget final : public Limit {
 public:
  static constexpr Bytes kTorchAlone = 72_MiB;  // for plans made from files; a run measures its own
  static constexpr Bytes kWarmUp = 48_MiB;
  static constexpr Bytes kWarmUpInPython = 64_MiB;
  static constexpr Bytes kCompiler = 60_MiB;
  static constexpr Bytes kMargin = 8_MiB;
  // The bytes of its parent's pages that a child made by fork copies in its first moments. In Python every access to an
  // object writes its reference count. Measured: 7 to 10 MiB in workers of a DataLoader.
  static constexpr Bytes kForkedInPython = 12_MiB;
  static constexpr std::uint64_t kFirstSteps = 2;  // libraries warm up in them
  // Code that is read in only as a process ends. Measured: 7 to 10 MiB; 18 MiB with Python on a kernel that keeps files
  // in huge pages.
  static constexpr Bytes kAtExit = 24_MiB;
  // Part of the least budget, for each process: by chance, another run may hold this much more outside the pool.
  static constexpr Bytes kLeastAllowance = 2_MiB;

  // `stated`: the budget; zero means unlimited. `outside_start`: what the process holds now, while the pool is empty.
  // `warm_up`: what it will take outside the pool in its first steps. `resident` returns what the process holds at that
  // moment (or what it holds of a card). `tree` must outlive this object; null: the process is alone.
  // `lends`: whether lend() may be asked; on a card the libraries need what is reserved.
  Budget(Bytes stated, Bytes outside_start, Bytes warm_up, std::function<Bytes()> resident, Tree* tree,
         bool lends = true);

  // The least stated bytes with which a run can start; the pool may then hold nothing.
  static Bytes least(Bytes outside_start, Bytes warm_up) { return outside_start + warm_up + kMargin; }

  Bytes resident_limit(Bytes pool_resident) override;
  // The part of what the limit leaves to other processes that they do not hold yet (Others::expected).
  Bytes expected() const { return others().expected; }
  Bytes missing(Bytes pool_resident) override;
  bool recount(Bytes needed) override;
  bool others_grow() override { return !unlimited() && tree_ != nullptr && tree_->others_grow(); }
  void lease(Bytes bytes) override {
    if (tree_ != nullptr) tree_->lease(bytes);
  }
  void end_lease(Bytes leased, Bytes taken) override {
    if (tree_ != nullptr) tree_->end_lease(leased, taken);
  }

  // The bytes that the process held outside the pool when the limit was last asked for.
  Bytes outside() const { return Bytes{outside_.load()}; }
  // outside() without the pages of mapped files that can be let go (in_files()).
  Bytes outside_for_good() const { return outside_beside_files() + Bytes{files_own_.load()}; }
  // outside() without any pages of mapped files that ops use.
  Bytes outside_beside_files() const { return Bytes{beside_files_.load()}; }
  // The most that outside() has been.
  Bytes outside_peak() const { return Bytes{outside_peak_.load()}; }
  // The bytes reserved for the outside, charges and foreseen bytes included, and pages of files that ops wrote to.
  // Charges are added to the reserve, or to outside_beside_files() at the first charge if that was more.
  Bytes expected_outside() const;
  // The bytes reserved at the start.
  Bytes expected_at_start() const { return expected_at_start_; }

  // Returns the least budget of the run so far. `at_once`: the most that the pool needed at one moment since the last
  // call. Adds the most that the pool could not have had since then (needed(): the outside, the margin, what
  // other processes held) and kLeastAllowance. Returns the largest such sum of all calls.
  Bytes note_least(Bytes at_once);
  // Leaves out of the least budget what the pool could not have had since the last note_least().
  void forget_needed() { needed_lately_.exchange({}); }
  // Returns the least budget of a run that also serves a request which was refused. `at_once`: what the pool would have
  // needed for it. Notes nothing, because the program may catch the error and go on without the request.
  Bytes least_with(Bytes at_once) const;

  // Call this before a fork that Tree::forking() was told to count. `live`: the pool's live bytes.
  //
  // If `live` does not fit into a budget, a run in it has evicted something before the fork, and so it evicts all that
  // it can before the fork. Its children inherit nothing. So if the least without what children inherited
  // (Tree::inherited()) is such a budget, that is the least. Else the least is the one with it.
  void note_fork(Bytes live);

  // Call this when a step of the program ends. From the third step on the reserve follows the bytes that were outside.
  void end_step();
  // What expected_outside() will be after end_step(), if no more is outside until then than in this step so far and in
  // the step before.
  Bytes expected_after_step() const;
  // Lends the pool the unused part of the reserve. False: there is none, or it is not lent.
  bool lend();

  // Announces that outside_beside_files() will soon reach `outside`, so that the pool holds no more than these bytes
  // leave. The announcement does not raise the least budget, because bytes that are really taken are measured. Zero
  // ends it, and so does lend().
  void foresee(Bytes outside) { foreseen_.store(outside.count); }

  // Says how many bytes of mapped files are in memory and can be let go (`there`), how many more ops in flight may read
  // in (`coming`), and how many ops have written to (`own`). The pool may have none of them, and no reserve stands for
  // them. `there` and `coming` are not part of the least budget: what an op needs of them at once is part of
  // note_least()'s `at_once`. `own` is part of outside_for_good(), because such pages cannot be let go. `found`: the
  // part of `there` and `own` that was in memory before it was counted, so the reserve may stand for it. It does no
  // more.
  void in_files(Bytes there, Bytes coming, Bytes own, Bytes found);

  // Reserves bytes that a consumer outside the pool is about to take, on top of those that are there now, until
  // discharge(). The caller has the pool make room for them.
  void charge(Bytes bytes);
  void discharge(Bytes bytes);
  // Announces that a consumer which is no part of the program, such as planning, takes `bytes` of the unused reserve.
  // end_step() does not count them, so the reserve does not grow by them for good. Zero ends it.
  void take_from_reserve(Bytes bytes) { taken_from_reserve_.store(bytes.count); }
  // Begins or ends a stretch in which charged bytes do not count for the least budget, because they would be given up
  // before a request is refused. These are bytes for planning, and for code that runs only as the process ends. In a
  // stretch the least budget counts at most what the pool could not have at the last note_least() before it.
  void leave_out_of_least(bool begins);

  Bytes stated() const { return Bytes{stated_.load()}; }
  bool unlimited() const { return stated() == Bytes{}; }
  // For a child made by fork. Ends the reserve, because the libraries had taken what they need before the fork. Ends
  // what was foreseen too: that is the parent's, and nothing in the child would end it.
  void expect_nothing() { set_aside_.store(0), foreseen_.store(0); }
  // Changes the budget from the next time on that the limit is asked for.
  void restate(Bytes stated) { stated_.store(stated.count); }

 private:
  // What is set aside after a step that ends, if `most` was outside in it.
  std::uint64_t set_aside_after(std::uint64_t most) const;
  Bytes expected_with(std::uint64_t set_aside) const;
  Bytes reserved(std::uint64_t set_aside) const;  // the same without what is foreseen
  // Measures the bytes outside the pool. Returns the bytes of the budget that the pool may not have.
  Bytes beside(Bytes pool_resident);
  Others others() const { return tree_ != nullptr ? tree_->others() : Others{}; }
  // Returns the bytes that the pool could not have had if a request had been refused now and the process were alone.
  // They are the sum of two parts: the larger of what is outside and what is kept for it; and the margin. Charges are
  // kept, and so is a reserve that is not lent. On a card, charged bytes that do not stand outside do not count,
  // because they are given back before a refusal.
  Bytes needed_alone(Bytes outside) const;
  // Two figures: with what children inherited, and without it (note_fork()).
  struct Needed {
    Bytes all, uninherited;
  };
  // needed_alone() and what the others hold and would not evict, with kLeastAllowance for each of them; and the same
  // without Tree::inherited(). What the others are only expected to take does not count, because a request is refused
  // only after they took it; and neither does what is guessed.
  Needed needed(Bytes outside, const Others& others) const;
  // Adds to both what the pool needs at once and kLeastAllowance.
  static Needed with(const Needed& beside, Bytes at_once);
  static Needed lower(const Needed& a, const Needed& b);
  // Which of the two the least is.
  Bytes counted(const Needed& least) const;
  // needed() for a time in which nobody has asked for the limit since note_least(), so that nothing outside was
  // measured. On the CPU it then counts only if bytes are charged; else this is zero. On a card it always counts, with
  // what was outside at the last measurement.
  Needed still_needed() const;
  // The bytes outside the pool when the first of the present charges was made, plus all charges and what is own in
  // files; zero if nothing is charged.
  Bytes charged_outside() const;

  std::atomic<std::uint64_t> stated_;
  std::atomic<std::uint64_t> set_aside_;  // reserved, without charges
  const Bytes outside_start_;
  const Bytes expected_at_start_;
  const std::function<Bytes()> resident_;
  Tree* const tree_;
  const bool lends_;
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> foreseen_{0};
  std::atomic<std::uint64_t> taken_from_reserve_{0};
  std::atomic<std::uint64_t> outside_at_charge_{0};  // zero: nothing is charged
  std::atomic<std::uint64_t> files_there_{0}, files_coming_{0}, files_own_{0};
  std::atomic<std::uint64_t> outside_;
  std::atomic<std::uint64_t> beside_files_;  // outside_for_good() without files_own_
  std::atomic<std::uint64_t> outside_peak_{0};
  std::atomic<std::uint64_t> steps_{0};
  // The most of beside_files_ in this step and in the last one, less charges and what was taken from the reserve.
  std::atomic<std::uint64_t> outside_of_step_{0}, outside_of_last_step_{0};
  // A Needed that several threads may raise.
  struct Highest {
    std::atomic<std::uint64_t> all{0}, uninherited{0};
    void raise_to(const Needed& needed);
    Needed now() const { return {Bytes{all.load()}, Bytes{uninherited.load()}}; }
    Needed exchange(const Needed& needed);
  };
  Highest needed_lately_;  // the highest needed() since note_least()
  Highest beside_last_;    // needed_lately_ at the last note_least() outside a stretch of leave_out_of_least()
  Highest least_;
  // The least budget that has room for the live bytes of each fork so far, estimated from below.
  std::atomic<std::uint64_t> evicts_below_{UINT64_MAX};
  std::atomic<bool> left_out_{false};
  std::atomic<bool> follows_steps_{false};  // the reserve follows what steps were seen to take (end_step())
};

}  // namespace ullage::store
