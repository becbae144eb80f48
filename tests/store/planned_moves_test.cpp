// SPDX-License-Identifier: Apache-2.0
// The moves that a plan orders from the pager, on real pages with a real file and real page faults.
#include "pager_fixture.h"
#include "refill.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ullage::store {
namespace {

class PagerPlan : public PagerTest {
 protected:
  void open_with_recomputer(Bytes limit, Pager::Settings settings = {}) {
    open(limit, 1_GiB, settings);
    refill_ = std::make_unique<Refill>(*pager_, &PagerPlan::write);
    pager_->planned().set_recomputer(refill_.get());
  }
  void TearDown() override {
    if (has_background_) static_cast<void>(refill_.release());
    PagerTest::TearDown();
  }
  Address make_known(Bytes size, std::uint64_t seed) {
    const Address at = make(size, seed);
    refill_->know(at, size, seed);
    return at;
  }
  // Waits up to a minute for the background thread, whose work shows only in counts.
  template <typename Condition>
  static bool comes_true(Condition condition) {
    for (int i = 0; i < 60000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }

  std::unique_ptr<Refill> refill_;
};

TEST_F(PagerPlan, DroppedBytesAreMadeAgainWhenTheyAreTouched) {
  open_with_recomputer(64_MiB);
  const Address at = make_known(4_MiB, 7);
  ASSERT_TRUE(pager_->planned().drop(at));
  EXPECT_EQ(store_->counts().present, Bytes{});
  EXPECT_EQ(pager_->counts().dropped, 4_MiB);
  EXPECT_EQ(pager_->counts().dropped_now, 4_MiB);
  EXPECT_EQ(pager_->counts().written, Bytes{});
  EXPECT_TRUE(holds(at, 4_MiB, 7));
  EXPECT_EQ(pager_->counts().recomputed, 1u);
  EXPECT_EQ(refill_->at_faults(), 1u);
  EXPECT_EQ(pager_->counts().dropped_now, Bytes{});
  EXPECT_EQ(store_->counts().present, 4_MiB);
  words(at)[5] = 1;  // writable as before, without a fault
  EXPECT_EQ(pager_->counts().faults, 1u);
}

TEST_F(PagerPlan, WhatAnOpOrBackwardNeedsIsMadeAgainFirst) {
  Pager::Settings settings;
  settings.heal_faults = false;
  open_with_recomputer(64_MiB, settings);
  const Address read = make_known(4_MiB, 7);
  const Address saved = make_known(2_MiB, 8);
  ASSERT_TRUE(pager_->planned().drop(read));
  ASSERT_TRUE(pager_->planned().drop(saved));
  EXPECT_EQ(pager_->on_fault(read).what, Pager::Fault::Failed);
  ASSERT_FALSE(begin(1, {read}));
  EXPECT_TRUE(holds(read, 4_MiB, 7));
  pager_->end_op();
  ASSERT_FALSE(pager_->bring_back(saved + 1_MiB));
  EXPECT_TRUE(holds(saved, 2_MiB, 8));
  EXPECT_EQ(pager_->counts().recomputed, 2u);
  EXPECT_EQ(refill_->at_faults(), 0u);
}

TEST_F(PagerPlan, OnlyStoragesThatNoOpUsesAreDroppedOrSpilled) {
  open_with_recomputer(64_MiB);
  const Address small = make(8_KiB, 1);
  const Address pinned = make_known(1_MiB, 2);
  const Address spilled = make_known(1_MiB, 3);
  const Address dropped = make_known(1_MiB, 4);
  ASSERT_TRUE(pager_->planned().spill(spilled));
  ASSERT_TRUE(pager_->planned().drop(dropped));
  ASSERT_FALSE(begin(1, {pinned}));
  const PagerCounts before = pager_->counts();
  for (const Address at : {small, pinned, dropped, pinned + 4_KiB, Address{4096}}) {
    EXPECT_FALSE(pager_->planned().drop(at));
    EXPECT_FALSE(pager_->planned().spill(at));
  }
  EXPECT_FALSE(pager_->planned().spill(spilled));
  EXPECT_EQ(pager_->counts().spilled, before.spilled);
  EXPECT_EQ(pager_->counts().dropped, before.dropped);
  pager_->end_op();
  EXPECT_TRUE(pager_->planned().drop(pinned));
  for (const auto& [at, seed] : {std::pair{pinned, 2u}, std::pair{spilled, 3u}, std::pair{dropped, 4u}}) {
    EXPECT_TRUE(holds(at, 1_MiB, seed));
  }
  EXPECT_TRUE(holds(small, 8_KiB, 1));
}

TEST_F(PagerPlan, DroppingGivesTheCopyInTheFileBack) {
  open_with_recomputer(64_MiB);
  const Address at = make_known(4_MiB, 7);
  ASSERT_TRUE(pager_->planned().spill(at));
  ASSERT_FALSE(pager_->bring_back(at));
  EXPECT_EQ(file_->counts().in_use, 8_MiB);  // the copy and the slot in reserve
  ASSERT_TRUE(pager_->planned().drop(at));
  EXPECT_EQ(file_->counts().in_use, 4_MiB);
  ASSERT_FALSE(pager_->bring_back(at));
  ASSERT_TRUE(pager_->planned().spill(at));
  ASSERT_TRUE(pager_->planned().drop(at));  // drops a spilled storage
  EXPECT_EQ(file_->counts().in_use, 4_MiB);
  EXPECT_EQ(pager_->counts().spilled_now, Bytes{});
  EXPECT_EQ(pager_->counts().dropped_now, 4_MiB);
  EXPECT_TRUE(holds(at, 4_MiB, 7));
  ASSERT_TRUE(pager_->planned().drop(at));
  pager_->free(at);
  EXPECT_EQ(pager_->counts().dropped_now, Bytes{});
  EXPECT_EQ(store_->counts().vacated, Bytes{});
  EXPECT_EQ(file_->counts().in_use, 4_MiB);
}

TEST_F(PagerPlan, SpillWritesWhatChangedAndOnlyThat) {
  open(64_MiB);
  const Address at = make(4_MiB, 5);
  ASSERT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(store_->counts().present, Bytes{});
  EXPECT_EQ(pager_->counts().written, 4_MiB);
  ASSERT_FALSE(pager_->bring_back(at));
  ASSERT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(pager_->counts().written, 4_MiB);
  EXPECT_EQ(pager_->counts().rewrites_avoided, 4_MiB);
  ASSERT_FALSE(begin(1, {at}, /*written=*/true));
  write(at, 4_MiB, 6);
  pager_->end_op();
  ASSERT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(pager_->counts().written, 8_MiB);
  EXPECT_TRUE(holds(at, 4_MiB, 6));
  EXPECT_EQ(pager_->counts().evicted_on_demand, 0u);
}

TEST_F(PagerPlan, ASpillThatFailsSaysWhyAndLosesNothing) {
  open(64_MiB);
  const Address at = make(4_MiB, 5);
  writes_until_failure = 0;
  EXPECT_FALSE(pager_->planned().spill(at));
  EXPECT_NE(pager_->counts().spill_failure.find("Input/output error"), std::string::npos);
  EXPECT_EQ(store_->counts().present, 4_MiB);
  write(at, 4_MiB, 6);
  EXPECT_EQ(pager_->counts().faults, 0u);
  EXPECT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(pager_->counts().spill_failure, "");
  EXPECT_TRUE(holds(at, 4_MiB, 6));
}

TEST_F(PagerPlan, WithoutAFileNothingIsSpilled) {
  open(64_MiB);
  const std::unique_ptr<Pager> without = Pager::create(*store_, nullptr, {});
  const Address at = std::get<Address>(without->allocate(1_MiB));
  EXPECT_FALSE(without->planned().spill(at));
  without->planned().write_ahead(at);
  without->planned().read_ahead(at);
  EXPECT_TRUE(without->planned().drop(at));
  EXPECT_EQ(without->counts().spilled, Bytes{});
  without->free(at);
}

TEST_F(PagerPlan, AdoptedPagesComeWithTheirBytes) {
  open(64_MiB);
  for (const bool spilled : {false, true}) {
    const Address at = make(5_MiB, 1);
    ASSERT_TRUE(spilled ? pager_->planned().spill(at) : pager_->planned().drop(at));
    const Address from = make(5_MiB, 2);
    EXPECT_EQ(store_->counts().present, 5_MiB);
    ASSERT_TRUE(pager_->planned().adopt(at, from));
    EXPECT_EQ(store_->counts().present, 5_MiB);
    EXPECT_TRUE(holds(at, 5_MiB, 2));
    EXPECT_EQ(pager_->counts().spilled_now, Bytes{});
    EXPECT_EQ(pager_->counts().dropped_now, 5_MiB);
    pager_->free(from);
    EXPECT_EQ(pager_->counts().dropped_now, Bytes{});
    EXPECT_EQ(pager_->counts().faults, 0u);
    // Its old copy in the file is no longer valid.
    EXPECT_LE(file_->counts().in_use, 5_MiB);  // only the slot in reserve
    const Bytes written = pager_->counts().written;
    ASSERT_TRUE(pager_->planned().spill(at));
    EXPECT_EQ(pager_->counts().written - written, 5_MiB);
    ASSERT_FALSE(pager_->bring_back(at));
    EXPECT_TRUE(holds(at, 5_MiB, 2));
    pager_->free(at);
  }
}

TEST_F(PagerPlan, NothingIsAdoptedWhereItDoesNotFit) {
  open(64_MiB);
  const Address resident = make(1_MiB, 1);
  const Address dropped = make(1_MiB, 2);
  const Address gone = make(1_MiB, 3);
  const Address other_size = make(1_MiB - 1_B, 4);
  const Address small = make(4_KiB, 5);
  const Address from = make(1_MiB, 6);
  ASSERT_TRUE(pager_->planned().drop(dropped));
  ASSERT_TRUE(pager_->planned().drop(gone));
  EXPECT_FALSE(pager_->planned().adopt(resident, from));
  EXPECT_FALSE(pager_->planned().adopt(from, from));
  EXPECT_FALSE(pager_->planned().adopt(dropped, gone));
  EXPECT_FALSE(pager_->planned().adopt(dropped, dropped));
  EXPECT_FALSE(pager_->planned().adopt(dropped, other_size));
  EXPECT_FALSE(pager_->planned().adopt(dropped, small));
  EXPECT_FALSE(pager_->planned().adopt(Address{4096}, from));
  EXPECT_FALSE(pager_->planned().adopt(dropped, Address{4096}));
  EXPECT_TRUE(holds(from, 1_MiB, 6));
  EXPECT_TRUE(pager_->planned().adopt(dropped, from));
  EXPECT_TRUE(holds(dropped, 1_MiB, 6));
}

TEST_F(PagerPlan, WhatWasEvictedSinceItWasMadeIsAdoptedAllTheSame) {
  open(64_MiB);
  const Address at = make(3_MiB, 1);
  ASSERT_TRUE(pager_->planned().drop(at));
  const Address from = make(3_MiB, 2);
  pager_->evict_all();
  ASSERT_TRUE(pager_->planned().adopt(at, from));
  pager_->free(from);
  EXPECT_TRUE(holds(at, 3_MiB, 2));
  EXPECT_LE(file_->counts().in_use, 3_MiB);  // only the slot in reserve
}

TEST_F(PagerPlan, WhatWasHandedOverCannotBeTouched) {
  open_with_recomputer(64_MiB);
  const Address at = make(1_MiB, 1);
  ASSERT_TRUE(pager_->planned().drop(at));
  const Address from = make(1_MiB, 2);
  ASSERT_TRUE(pager_->planned().adopt(at, from));
  const Pager::FaultAnswer answer = pager_->on_fault(from);
  EXPECT_EQ(answer.what, Pager::Fault::Failed);
  EXPECT_EQ(answer.why, "its bytes were dropped, and could not be recomputed");
}

TEST_F(PagerPlan, WhatIsWrittenAheadIsSpilledWithoutWriting) {
  open(64_MiB);
  const Address at = make(4_MiB, 5);
  pager_->planned().write_ahead(at);
  run_background();
  ASSERT_TRUE(comes_true([&] { return pager_->counts().written_ahead == 4_MiB; }));
  ASSERT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(pager_->counts().written, 4_MiB);
  EXPECT_TRUE(holds(at, 4_MiB, 5));
  // The storage is changed after it was written ahead, so the copy is not valid.
  write(at, 4_MiB, 6);
  pager_->planned().write_ahead(at);
  ASSERT_TRUE(comes_true([&] { return pager_->counts().written_ahead == 8_MiB; }));
  write(at, 4_MiB, 7);
  ASSERT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(pager_->counts().written, 12_MiB);
  EXPECT_TRUE(holds(at, 4_MiB, 7));
}

TEST_F(PagerPlan, ACopyThatIsBeingWrittenIsWorthlessOnceItsBytesGo) {
  open(64_MiB);
  run_background();
  const Address dropped = make(1_MiB, 1);
  const Address given = make(1_MiB, 2);
  for (const Address at : {dropped, given}) {
    const int before = writes_done;
    writes_wait = true;
    pager_->planned().write_ahead(at);
    ASSERT_TRUE(comes_true([before] { return writes_done > before; }));
    ASSERT_TRUE(pager_->planned().drop(dropped));
    const Address from = at == given ? given : make(1_MiB, 3);
    ASSERT_TRUE(pager_->planned().adopt(dropped, from));
    writes_wait = false;
    ASSERT_TRUE(pager_->planned().spill(dropped));
    EXPECT_TRUE(holds(dropped, 1_MiB, at == given ? 2 : 3));
    pager_->free(from);
    EXPECT_TRUE(comes_true([&] { return file_->counts().in_use == 2_MiB; }));  // its copy and the slot in reserve
  }
}

TEST_F(PagerPlan, WhatIsReadAheadIsPresentFromThenOn) {
  open(64_MiB);
  const Address at = make(4_MiB, 5);
  ASSERT_TRUE(pager_->planned().spill(at));
  pager_->planned().read_ahead(at);
  pager_->planned().read_ahead(at);
  EXPECT_EQ(store_->counts().present, 4_MiB);
  EXPECT_EQ(pager_->counts().restored, Bytes{});
  run_background();
  ASSERT_TRUE(comes_true([&] { return pager_->counts().restored_ahead == 4_MiB; }));
  ASSERT_FALSE(pager_->bring_back(at));
  EXPECT_EQ(pager_->counts().restored, 4_MiB);
  EXPECT_TRUE(holds(at, 4_MiB, 5));
  EXPECT_EQ(pager_->counts().faults, 0u);
  EXPECT_EQ(store_->counts().present_peak, 4_MiB);
}

// Without a background thread, the thread that needs an ordered move does it.
TEST_F(PagerPlan, OrdersThatHaveNotBegunAreDoneByWhoNeedsThem) {
  open(64_MiB);
  const Address at = make(4_MiB, 5);
  pager_->planned().write_ahead(at);
  ASSERT_TRUE(pager_->planned().spill(at));
  pager_->planned().read_ahead(at);
  ASSERT_FALSE(pager_->bring_back(at));
  EXPECT_TRUE(holds(at, 4_MiB, 5));
  EXPECT_EQ(pager_->counts().restored_ahead, Bytes{});
  EXPECT_EQ(store_->counts().present, 4_MiB);
}

TEST_F(PagerPlan, PagesToBeReadIntoMakeWay) {
  open(8_MiB);
  const Address at = make(5_MiB, 5);
  ASSERT_TRUE(pager_->planned().spill(at));
  pager_->planned().read_ahead(at);
  EXPECT_EQ(store_->counts().present, 5_MiB);
  const Address other = make(6_MiB, 6);
  EXPECT_EQ(store_->counts().present, 6_MiB);
  pager_->planned().read_ahead(at);  // there is no room, so it is read only when needed
  EXPECT_EQ(store_->counts().present, 6_MiB);
  EXPECT_EQ(pager_->counts().evicted_on_demand, 0u);
  ASSERT_FALSE(begin(1, {at}));
  EXPECT_TRUE(holds(at, 5_MiB, 5));
  pager_->end_op();
  EXPECT_EQ(pager_->counts().evicted_on_demand, 1u);
  EXPECT_TRUE(holds(other, 6_MiB, 6));
}

TEST_F(PagerPlan, StoragesFreedOrAdoptedWhileTheyAreToBeReadLeaveNothing) {
  open(64_MiB);
  const Address freed = make(3_MiB, 1);
  const Address adopted = make(3_MiB, 2);
  for (const Address at : {freed, adopted}) {
    ASSERT_TRUE(pager_->planned().spill(at));
    pager_->planned().read_ahead(at);
  }
  pager_->free(freed);
  const Address from = make(3_MiB, 3);
  ASSERT_TRUE(pager_->planned().adopt(adopted, from));
  pager_->free(from);
  run_background();
  EXPECT_TRUE(holds(adopted, 3_MiB, 3));
  EXPECT_EQ(store_->counts().present, 3_MiB);
  EXPECT_EQ(store_->counts().vacated, Bytes{});
  EXPECT_EQ(store_->counts().resident - store_->counts().idle, 3_MiB);
  EXPECT_LE(file_->counts().in_use, 3_MiB);  // only the slot in reserve
}

// A read ahead fails in the background. The storage stays spilled, and the read is tried again when it is needed.
TEST_F(PagerPlan, AReadAheadThatFailsIsToldToWhoNeedsIt) {
  open(64_MiB);
  const Address at = make(3_MiB, 1);
  ASSERT_TRUE(pager_->planned().spill(at));
  pager_->planned().read_ahead(at);
  reads_until_failure = 0;
  run_background();
  ASSERT_TRUE(comes_true([&] { return store_->counts().present == Bytes{}; }));
  EXPECT_EQ(pager_->counts().restored_ahead, Bytes{});
  ASSERT_FALSE(pager_->bring_back(at));
  EXPECT_TRUE(holds(at, 3_MiB, 1));
}

TEST_F(PagerPlan, WhoCannotRecomputeSaysSo) {
  class Hopeless final : public Recomputer {
   public:
    explicit Hopeless(Pager& pager) : pager_(pager) {}
    bool recompute(Address at, bool) override {
      if (mode == 0) return false;
      if (mode == 1) return true;  // a lie: it recomputed nothing
      if (mode == 2) throw std::runtime_error("no recipe");
      const auto missing = pager_.bring_back(at);  // asks for the very storage that it should recompute
      seen = missing ? missing->spill_failure : "";
      return false;
    }
    int mode = 0;
    std::string seen;

   private:
    Pager& pager_;
  };
  open(64_MiB);
  const Address at = make(1_MiB, 1);
  ASSERT_TRUE(pager_->planned().drop(at));
  const auto why = [&] {
    const auto missing = begin(1, {at});
    if (!missing) return std::string("it came back");
    EXPECT_EQ(missing->refusal.requested, 1_MiB);
    return missing->spill_failure;
  };
  EXPECT_EQ(why(), "its bytes were dropped, and nothing can recompute them");
  Hopeless hopeless(*pager_);
  pager_->planned().set_recomputer(&hopeless);
  EXPECT_EQ(why(), "its bytes were dropped, and could not be recomputed");
  hopeless.mode = 1;
  EXPECT_EQ(why(), "its bytes were dropped, and could not be recomputed");
  hopeless.mode = 2;
  EXPECT_EQ(why(), "its bytes were dropped, and could not be recomputed: no recipe");
  EXPECT_EQ(pager_->on_fault(at).why, "its bytes were dropped, and could not be recomputed: no recipe");
  hopeless.mode = 3;
  EXPECT_EQ(why(), "its bytes were dropped, and could not be recomputed");
  EXPECT_EQ(hopeless.seen, "its bytes were dropped, and recomputing them needs these very bytes");
  EXPECT_EQ(pager_->counts().recomputed, 0u);
  // The failures did no harm: a recomputer that works succeeds.
  Refill refill(*pager_, &PagerPlan::write);
  refill.know(at, 1_MiB, 1);
  pager_->planned().set_recomputer(&refill);
  EXPECT_TRUE(holds(at, 1_MiB, 1));
}

// Each storage of a chain is recomputed from the one before it, which was dropped, too.
TEST_F(PagerPlan, WhatIsNeededToRecomputeIsRecomputedFirst) {
  class Chain final : public Recomputer {
   public:
    explicit Chain(Pager& pager) : pager_(pager) {}
    bool recompute(Address at, bool) override {
      std::size_t link = 0;
      while (links[link] != at) ++link;
      const Address before = links[link - 1];
      const OpInput input{before, 2_MiB, false};
      if (pager_.begin_op(1, {&input, 1})) return false;
      const Address made = std::get<Address>(pager_.allocate(2_MiB));
      for (std::size_t i = 0; i < (2_MiB).count / 8; ++i) PagerTest::words(made)[i] = PagerTest::words(before)[i] + 1;
      pager_.end_op(/*remember=*/false);
      const bool adopted = pager_.planned().adopt(at, made);
      pager_.free(made);
      return adopted;
    }
    std::vector<Address> links;

   private:
    Pager& pager_;
  };
  open(8_MiB);
  Chain chain(*pager_);
  pager_->planned().set_recomputer(&chain);
  for (std::uint64_t i = 0; i < 6; ++i) {
    chain.links.push_back(make(2_MiB, 0));
    for (std::size_t w = 0; w < (2_MiB).count / 8; ++w) words(chain.links[i])[w] += i;
    if (i == 0) continue;
    ASSERT_TRUE(pager_->planned().drop(chain.links[i]));
  }
  ASSERT_FALSE(begin(1, {chain.links[5]}));
  for (std::size_t w = 0; w < (2_MiB).count / 8; ++w) ASSERT_EQ(words(chain.links[5])[w], w + 5);
  pager_->end_op();
  EXPECT_EQ(pager_->counts().recomputed, 5u);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(words(chain.links[i])[9], 9 + i);
  EXPECT_LE(store_->counts().resident_peak, 8_MiB);
}

TEST_F(PagerPlan, ThreadsThatNeedTheSameStorageMakeItOnce) {
  open_with_recomputer(64_MiB);
  const Address at = make_known(1_MiB, 3);
  std::atomic<int> wrong{0};
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(pager_->planned().drop(at));
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        wrong += !holds(at, 1_MiB, 3);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(refill_->calls(), static_cast<std::uint64_t>(kRounds));
  EXPECT_EQ(pager_->counts().recomputed, static_cast<std::uint64_t>(kRounds));
}

// One thread carries out a plan while another one reads all the time. The reader must always see the same contents.
TEST_F(PagerPlan, AReaderNeverSeesHalfOfIt) {
  open_with_recomputer(64_MiB);
  run_background();
  const Address at = make_known(3_MiB + 64_KiB, 3);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop) wrong += !holds(at, 3_MiB + 64_KiB, 3);
  });
  for (int round = 0; round < 100; ++round) {
    if (round % 3 == 0) {
      pager_->planned().write_ahead(at);
      pager_->planned().spill(at);
      pager_->planned().read_ahead(at);
    } else {
      pager_->planned().drop(at);
    }
    if (round % 2 == 0) continue;
    const Address from = make(3_MiB + 64_KiB, 3);
    pager_->planned().adopt(at, from);
    pager_->free(from);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store_->counts().live, 3_MiB + 64_KiB);
}

TEST_F(PagerPlan, TheHistoryHearsOnlyOfTheProgramsOps) {
  for (const bool remember : {false, true}) {
    open(8_MiB);
    std::vector<Address> all;
    for (std::uint64_t i = 0; i < 3; ++i) {
      all.push_back(make(2_MiB, i));
      ASSERT_FALSE(begin(i, {all[i]}));
      pager_->end_op();
    }
    ASSERT_FALSE(begin(9, {all[0]}));  // a recompute, if `remember` is false
    pager_->end_op(remember);
    make(3_MiB, 4);  // one must be evicted: the least recently used
    const Bytes before = pager_->counts().restored;
    ASSERT_FALSE(begin(1, {all[remember ? 0 : 1]}));
    pager_->end_op();
    EXPECT_EQ(pager_->counts().restored, before) << remember;
    EXPECT_EQ(pager_->counts().evicted_on_demand, 1u);
  }
}

TEST_F(PagerPlan, UnderAPlanTheBackgroundMovesOnlyWhatItIsTold) {
  open(40_MiB);
  pager_->planned().follow_plan(true);
  run_background();
  std::vector<Address> all;
  for (std::uint64_t i = 0; i < 12; ++i) all.push_back(make(4_MiB, i));
  for (int round = 0; round < 30; ++round) {
    for (std::uint64_t op = 0; op < 48; ++op) {
      ASSERT_FALSE(begin(100 + op, {all[op / 4]}, op % 8 == 0));
      ASSERT_TRUE(holds(all[op / 4], 4_MiB, op / 4));
      pager_->end_op();
    }
  }
  EXPECT_EQ(pager_->counts().written_ahead, Bytes{});
  EXPECT_EQ(pager_->counts().restored_ahead, Bytes{});
  ASSERT_TRUE(pager_->planned().spill(all[11]));
  pager_->planned().read_ahead(all[11]);
  EXPECT_TRUE(comes_true([&] { return pager_->counts().restored_ahead == 4_MiB; }));
}

TEST_F(PagerPlan, ThePlannedRoomIsTheLimitLessWhatIsWasted) {
  open(8_MiB);
  EXPECT_EQ(pager_->planned().room(), 8_MiB);
  const Address gone = make(4_MiB, 1);
  EXPECT_EQ(pager_->planned().room(), 8_MiB);
  make(64_KiB + 8_B, 1);
  EXPECT_EQ(pager_->planned().room(), 8_MiB - (4_KiB - 8_B));
  make(128_B, 1);
  EXPECT_EQ(pager_->planned().room(), 8_MiB - (4_KiB - 8_B) - (Slabs::kSlab - 128_B));
  pager_->free(gone);  // its pages are idle now, not wasted
  make(64_KiB, 1);
  EXPECT_EQ(pager_->planned().room(), 8_MiB - (4_KiB - 8_B) - (Slabs::kSlab - 128_B));
}

}  // namespace
}  // namespace ullage::store
