// SPDX-License-Identifier: Apache-2.0
// A forked child (such as a DataLoader's worker) has a copy of the store. Both processes go on alone, and neither sees
// the other's bytes.
#include "pager_fixture.h"
#include "refill.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace ullage::store {
namespace {

char* bytes_of_fork(Address a) { return reinterpret_cast<char*>(a.value); }

int exit_of_child(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(StoreFork, ParentAndChildGoOnAlone) {
  OsPages pages;
  FixedLimit limit(256_MiB);
  auto made = Store::create(pages, limit);
  ASSERT_TRUE(made);
  Store& store = **made;
  const Address shared = std::get<Address>(store.allocate(8_MiB));
  std::memset(bytes_of_fork(shared), 1, (8_MiB).count);
  store.free(std::get<Address>(store.allocate(32_MiB)));  // idle pages, which both processes will reuse

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Address own = std::get<Address>(store.allocate(20_MiB));
    std::memset(bytes_of_fork(own), 2, (20_MiB).count);
    bytes_of_fork(shared)[100] = 2;
    store.free(shared);
    const bool right = std::holds_alternative<Address>(store.allocate(100_MiB)) && bytes_of_fork(own)[5] == 2;
    _exit(right ? 0 : 1);
  }
  const Address own = std::get<Address>(store.allocate(20_MiB));
  std::memset(bytes_of_fork(own), 3, (20_MiB).count);
  EXPECT_EQ(exit_of_child(child), 0);
  EXPECT_EQ(bytes_of_fork(shared)[100], 1);
  EXPECT_EQ(bytes_of_fork(own)[(20_MiB).count - 1], 3);
  EXPECT_EQ(store.counts().live, 28_MiB);
}

TEST(StoreFork, WhileOtherThreadsAllocate) {
  OsPages pages;
  FixedLimit limit(256_MiB);
  auto made = Store::create(pages, limit);
  ASSERT_TRUE(made);
  Store& store = **made;
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    for (std::uint64_t i = 0; !stop; ++i) store.free(std::get<Address>(store.allocate(Bytes{100 + 70000 * (i % 40)})));
  });
  for (int i = 0; i < 20; ++i) {
    store.fork_lock().lock();  // as the pool does through pthread_atfork
    const pid_t child = fork();
    store.fork_lock().unlock();
    if (child == 0) {
      alarm(20);  // the signal ends a child that waits for a lock forever
      for (std::uint64_t k = 0; k < 50; ++k)
        store.free(std::get<Address>(store.allocate(Bytes{100 + 70000 * (k % 40)})));
      _exit(0);
    }
    ASSERT_EQ(exit_of_child(child), 0);
  }
  stop = true;
  busy.join();
}

using PagerFork = PagerTest;

// A child cannot recompute dropped bytes, so they are recomputed before the fork.
TEST_F(PagerFork, AChildFindsWhatWasDropped) {
  open(16_MiB);
  Refill refill(*pager_, &PagerTest::write);
  pager_->planned().set_recomputer(&refill);
  std::vector<Address> all;
  for (std::uint64_t i = 0; i < 8; ++i) {
    all.push_back(make(3_MiB, i));
    refill.know(all[i], 3_MiB, i);
    ASSERT_TRUE(pager_->planned().drop(all[i]));
  }
  pager_->before_fork();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    pager_->after_fork_in_child();
    bool right = true;
    for (std::uint64_t i = 0; i < 8; ++i) right = right && holds(all[i], 3_MiB, i) && !pager_->planned().drop(all[i]);
    _exit(right ? 0 : 1);
  }
  pager_->after_fork_in_parent();
  EXPECT_EQ(exit_of_child(child), 0);
  EXPECT_EQ(refill.calls(), 8u);
  EXPECT_EQ(pager_->counts().dropped_now, Bytes{});
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(holds(all[i], 3_MiB, i));
}

class PagerForkPages : public PagerTest {
 protected:
  // Calls what pthread_atfork would call, without making a child.
  void fork_once() {
    pager_->before_fork();
    pager_->after_fork_in_parent();
  }
  Pager::Settings counting() {
    Pager::Settings settings;
    settings.diverged = [this](Bytes bytes) { diverged_ += bytes; };
    settings.copying = [this](Bytes bytes) { copying_ += bytes, copying_at_ = diverged_; };
    settings.copied = [this](Bytes bytes) { copying_ = copying_ - bytes; };
    settings.left_to_children = [this](Bytes bytes) { left_ += bytes; };
    settings.used_inherited = [this](Bytes bytes) { used_ += bytes; };
    return settings;
  }
  Bytes diverged_, left_, used_;
  Bytes copying_;     // of ops in flight
  Bytes copying_at_;  // diverged_ when it last grew
};

TEST_F(PagerForkPages, TellsWhatTheChildHasAndThisProcessNoMore) {
  open(64_MiB, 1_GiB, counting());
  const Address written = make(2_MiB, 1), read = make(3_MiB, 2), freed = make(4_MiB, 3), evicted = make(5_MiB, 4);
  begin(1, {written, read}, /*written=*/true), pager_->end_op();
  EXPECT_EQ(diverged_, Bytes{}) << "nothing is shared yet";
  fork_once();
  EXPECT_EQ(store_->counts().resident, 14_MiB) << "there is room for it twice";
  begin(1, {read}), pager_->end_op();
  EXPECT_EQ(diverged_, Bytes{});
  begin(1, {written}, /*written=*/true), pager_->end_op();
  EXPECT_EQ(diverged_, 2_MiB);
  begin(1, {written}, /*written=*/true), pager_->end_op();
  EXPECT_EQ(diverged_, 2_MiB) << "told twice";
  pager_->free(freed);
  EXPECT_EQ(diverged_, 6_MiB);
  ASSERT_TRUE(pager_->planned().spill(evicted));
  EXPECT_EQ(diverged_, 11_MiB);
  EXPECT_TRUE(holds(evicted, 5_MiB, 4));
  pager_->free(evicted);
  EXPECT_EQ(diverged_, 11_MiB) << "what came back is this process's alone";
  pager_->free(read);
  EXPECT_EQ(diverged_, 14_MiB);
  EXPECT_EQ(left_, 14_MiB);
}

// A count of pages while the op runs shows only a part of the copies.
TEST_F(PagerForkPages, WhatAnOpWritesIsBeingCopiedUntilItEnds) {
  open(64_MiB, 1_GiB, counting());
  alignas(4096) static std::byte weights[4096];
  const Address outside{reinterpret_cast<std::uint64_t>(weights)};  // begin() takes 1 MiB
  const Address first = make(2_MiB, 1), second = make(3_MiB, 2), freed = make(4_MiB, 3);
  fork_once();
  begin(1, {first, outside}, /*written=*/true);
  EXPECT_EQ(copying_, 3_MiB);
  EXPECT_EQ(diverged_, 3_MiB);
  EXPECT_EQ(copying_at_, 2_MiB) << "told before what diverged";
  begin(2, {first, second}, /*written=*/true);
  EXPECT_EQ(copying_, 6_MiB) << "an op within an op";
  pager_->end_op();
  EXPECT_EQ(copying_, 3_MiB);
  pager_->end_op();
  EXPECT_EQ(copying_, Bytes{});
  pager_->free(freed);
  EXPECT_EQ(diverged_, 10_MiB);
  EXPECT_EQ(copying_, Bytes{}) << "no op writes it";
}

// Pages that stayed idle would be copied by the next storage's first write, and nobody would see that.
TEST_F(PagerForkPages, WhatIsGivenUpGoesBackToTheSystem) {
  open(64_MiB, 1_GiB, counting());
  const Address freed = make(4_MiB, 1), evicted = make(5_MiB, 2), kept = make(3_MiB, 3);
  fork_once();
  pager_->free(freed);
  EXPECT_EQ(store_->counts().resident, 8_MiB);
  ASSERT_TRUE(pager_->planned().spill(evicted));
  EXPECT_EQ(store_->counts().resident, 3_MiB);
  EXPECT_TRUE(holds(evicted, 5_MiB, 2) && holds(kept, 3_MiB, 3));
  ASSERT_TRUE(pager_->planned().spill(evicted));
  EXPECT_EQ(store_->counts().idle, 5_MiB) << "what came back is shared with nobody";
}

TEST_F(PagerForkPages, SmallBlocksAreTakenForWritten) {
  open(64_MiB, 1_GiB, counting());
  make(64_B, 1);
  fork_once();
  EXPECT_EQ(diverged_, store_->counts().slabs);
  EXPECT_EQ(left_, Bytes{}) << "they cannot be evicted before a fork";
  EXPECT_GT(diverged_, Bytes{});
}

// An example of such bytes are weights in mapped files, which an optimizer updates.
TEST_F(PagerForkPages, CountsTheFirstWriteOutsideThePoolAfterEachFork) {
  open(64_MiB, 1_GiB, counting());
  alignas(4096) static std::byte weights[4096];
  const Address outside{reinterpret_cast<std::uint64_t>(weights)};
  const auto use = [&](bool written) { begin(1, {outside}, written), pager_->end_op(); };  // of 1 MiB
  use(true);
  EXPECT_EQ(diverged_, Bytes{}) << "nothing is shared yet";
  fork_once();
  use(false);
  EXPECT_EQ(diverged_, Bytes{});
  use(true), use(true);
  EXPECT_EQ(diverged_, 1_MiB);
  fork_once();
  use(true), use(true);
  EXPECT_EQ(diverged_, 2_MiB);
}

TEST_F(PagerForkPages, GivesWayBeforeAnOpWritesWhatIsShared) {
  Pager::Settings settings;
  settings.diverged = [this](Bytes bytes) { *limit_ = FixedLimit(limit_->resident_limit({}) - bytes); };
  open(64_MiB, 1_GiB, settings);
  const Address written = make(10_MiB, 1);
  fork_once();
  const Address other = make(20_MiB, 2);
  EXPECT_EQ(store_->counts().resident, 30_MiB);
  *limit_ = FixedLimit(35_MiB);
  begin(1, {written}, /*written=*/true);
  EXPECT_LE(store_->counts().resident, 25_MiB) << "what is left of the limit";
  pager_->end_op();
  EXPECT_TRUE(holds(written, 10_MiB, 1) && holds(other, 20_MiB, 2));
}

TEST_F(PagerForkPages, AChildGetsWhatThereIsRoomForTwice) {
  open(16_MiB, 1_GiB, counting());
  const Address first = make(5_MiB, 1), second = make(4_MiB, 2);
  pager_->free(make(3_MiB, 3));
  fork_once();
  const Bytes shared = store_->counts().resident;
  EXPECT_TRUE(shared == 5_MiB || shared == 4_MiB) << "idle pages too are given back";
  fork_once();
  EXPECT_EQ(store_->counts().resident, shared);
  EXPECT_TRUE(holds(first, 5_MiB, 1) && holds(second, 4_MiB, 2));
  pager_->free(first), pager_->free(second);
  EXPECT_EQ(diverged_, shared);
}

TEST_F(PagerForkPages, AChildTellsOnceWhatItUsesOfItsParent) {
  open(16_MiB, 1_GiB, counting());
  const Address used = make(3_MiB, 1), touched = make(2_MiB, 2);
  make(1_MiB, 3);
  ASSERT_TRUE(pager_->planned().spill(touched));
  pager_->before_fork();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    pager_->after_fork_in_child();
    const Address own = make(5_MiB, 4);
    for (int i = 0; i < 2; ++i) begin(1, {used, own}), pager_->end_op();
    const bool told_of_ops = used_ == 3_MiB;
    const bool right = holds(touched, 2_MiB, 2);  // a page fault
    _exit(told_of_ops && right && used_ == 5_MiB ? 0 : 1);
  }
  pager_->after_fork_in_parent();
  EXPECT_EQ(exit_of_child(child), 0);
  EXPECT_EQ(used_, Bytes{});
}

// Pages that the parent evicts later stay resident in the child as long as it lives.
TEST_F(PagerForkPages, AChildGetsNothingOfAProcessThatEvicts) {
  open(16_MiB, 1_GiB, counting());
  const Address first = make(5_MiB, 1), second = make(4_MiB, 2), third = make(8_MiB, 3);
  fork_once();
  EXPECT_EQ(store_->counts().resident, Bytes{});
  EXPECT_TRUE(holds(first, 5_MiB, 1) && holds(second, 4_MiB, 2) && holds(third, 8_MiB, 3));
  EXPECT_EQ(diverged_, Bytes{});
}

}  // namespace
}  // namespace ullage::store
