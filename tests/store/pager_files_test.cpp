// SPDX-License-Identifier: Apache-2.0
// What the pager does about mapped files: it lets their pages go before it evicts, and makes room before an op reads.
#include "pager_fixture.h"

#include <functional>
#include <set>

namespace ullage::store {
namespace {

constexpr Address kFile{1ull << 44};
constexpr Bytes kFileSize = 64_MiB;

// A file of which no byte exists, only which of its pages are in memory.
class MadeUpFile final : public FilePages {
 public:
  bool holds(Address at) const override { return kFile <= at && at < kFile + kFileSize; }
  Bytes mapped() const override { return is_mapped ? kFileSize : 0_B; }
  Bytes all_there() const override { return in_memory(); }
  std::vector<AddressRange> mappings() const override {
    return is_mapped ? std::vector<AddressRange>{{kFile, kFileSize}} : std::vector<AddressRange>{};
  }
  Count count(AddressRange range) const override {
    const auto first = there.lower_bound(range.begin), end = there.lower_bound(range.end());
    const Bytes bytes = kSmallPage * static_cast<std::uint64_t>(std::distance(first, end));
    return {bytes, written ? Bytes{} : bytes};
  }
  Bytes let_go(AddressRange range) override {
    went.push_back(range.begin);
    if (stays) return count(range).of_file;
    there.erase(there.lower_bound(range.begin), there.lower_bound(range.end()));
    return 0_B;
  }
  std::mutex& fork_lock() override { return lock; }

  // An op reads the bytes.
  void read(Address at, Bytes size) {
    for (Bytes done; done < size; done += kSmallPage) there.insert(at + done);
  }
  Bytes in_memory() const { return kSmallPage * there.size(); }

  std::set<Address> there;
  std::vector<Address> went;
  bool is_mapped = false, stays = false;
  bool written = false;  // all that is there
  std::mutex lock;
};

// What is left of `all` beside the file's pages.
class Beside final : public Limit {
 public:
  Bytes resident_limit(Bytes) override { return saturating_sub(all, std::max(seen(), there) + coming); }
  Bytes missing(Bytes resident) override { return saturating_sub(resident + std::max(seen(), there) + coming, all); }
  Bytes all, there, coming, own, found;
  std::function<Bytes()> seen = [] { return Bytes{}; };  // what the operating system says
};

class PagerFiles : public PagerTest {
 protected:
  void open_with_file(Bytes all) {
    beside_.all = all;
    pages_ = std::make_unique<OsPages>();
    auto store = Store::create(*pages_, beside_, {16_GiB, 16384});
    ASSERT_TRUE(store) << store.error().text();
    store_ = std::move(*store);
    auto file = SpillFile::open({std::filesystem::temp_directory_path().string(), 1_GiB}, {});
    ASSERT_TRUE(file) << file.error().text();
    file_ = std::move(*file);
    Pager::Settings settings;
    settings.files = &weights_;
    settings.in_files = [this](Bytes there, Bytes coming, Bytes own, Bytes found) {
      beside_.there = there, beside_.coming = coming, beside_.own = own, beside_.found += found;
    };
    pager_ = Pager::create(*store_, file_.get(), settings);
  }
  // An op reads `size` bytes of the file from `at` on.
  std::optional<Shortage> op(Bytes at, Bytes size, std::optional<Bytes> at_most = std::nullopt,
                             std::optional<Bytes> slice = std::nullopt) {
    const OpInput input{.storage = kFile + at, .size = size, .at_most = at_most, .slice = slice};
    if (auto missing = pager_->begin_op(1, {&input, 1})) return missing;
    held_.push_back(beside_.there + beside_.coming + store_->counts().resident);
    weights_.read(kFile + at, at_most.value_or(size));
    pager_->end_op();
    return std::nullopt;
  }

  Beside beside_;
  MadeUpFile weights_;
  std::vector<Bytes> held_;
};

TEST_F(PagerFiles, PagesThatNoOpUsesGoBeforeAnOpReadsOthers) {
  open_with_file(24_MiB);
  for (int round = 0; round < 3; ++round) {
    for (Bytes at; at < kFileSize; at += 8_MiB) ASSERT_FALSE(op(at, 8_MiB));
  }
  EXPECT_LE(weights_.in_memory(), 24_MiB);
  EXPECT_EQ(weights_.in_memory(), pager_->counts().files_there);
  for (const Bytes held : held_) EXPECT_LE(held, 24_MiB);
  EXPECT_EQ(pager_->counts().files_at_once_peak, 8_MiB);
  EXPECT_EQ(pager_->take_at_once(), 8_MiB);
}

TEST_F(PagerFiles, PagesGoBeforeAStorageIsEvicted) {
  open_with_file(24_MiB);
  ASSERT_FALSE(op(0_B, 16_MiB));
  const Address kept = make(6_MiB, 1);
  const Address more = make(10_MiB, 2);
  EXPECT_EQ(pager_->counts().spilled, 0_B);
  EXPECT_EQ(weights_.in_memory(), 8_MiB);
  EXPECT_EQ(pager_->counts().files_let_go, 8_MiB);
  EXPECT_TRUE(holds(kept, 6_MiB, 1));
  EXPECT_TRUE(holds(more, 10_MiB, 2));
}

TEST_F(PagerFiles, AStorageIsEvictedForWhatAnOpReads) {
  open_with_file(24_MiB);
  const Address first = make(10_MiB, 1), second = make(10_MiB, 2);
  ASSERT_FALSE(op(0_B, 8_MiB));
  EXPECT_EQ(pager_->counts().spilled, 10_MiB);
  EXPECT_LE(held_.back(), 24_MiB);
  ASSERT_FALSE(begin(2, {first, second}));  // both fit once the file's pages have gone
  EXPECT_TRUE(holds(first, 10_MiB, 1));
  EXPECT_TRUE(holds(second, 10_MiB, 2));
  pager_->end_op();
}

TEST_F(PagerFiles, AnOpThatReadsMoreThanThereIsIsRefused) {
  open_with_file(24_MiB);
  make(4_MiB, 1);
  const std::optional<Shortage> missing = op(0_B, 32_MiB);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->refusal.reason, Refusal::Reason::OverLimit);
  EXPECT_EQ(missing->refusal.requested, 32_MiB);
  EXPECT_EQ(missing->at_once, 32_MiB) << "what a larger budget needs for it, once";
  EXPECT_EQ(beside_.coming, 0_B);
  ASSERT_FALSE(op(0_B, 16_MiB)) << "the pager goes on";
}

TEST_F(PagerFiles, PagesThatAnOpWroteToAreTold) {
  open_with_file(24_MiB);
  ASSERT_FALSE(op(0_B, 8_MiB));
  EXPECT_EQ(beside_.there, 8_MiB);
  weights_.written = true;
  const OpInput input{.storage = kFile, .size = 8_MiB, .written = true};
  ASSERT_FALSE(pager_->begin_op(2, {&input, 1}));
  pager_->end_op();
  EXPECT_EQ(beside_.own, 8_MiB);
  EXPECT_EQ(beside_.there, 0_B);
  EXPECT_EQ(beside_.found, 0_B) << "an op announced them";
  pager_->take_at_once();
  ASSERT_FALSE(op(0_B, 8_MiB));
  EXPECT_EQ(pager_->take_at_once(), 0_B) << "they are outside the pool in use or not";
  ASSERT_FALSE(op(2_MiB + 4_KiB, 1_MiB));
  EXPECT_EQ(pager_->take_at_once(), 0_B);
  pager_->file_unmapped({kFile, 4_MiB});
  EXPECT_EQ(beside_.own, 4_MiB);
  pager_->before_fork();
  pager_->after_fork_in_child();
  EXPECT_EQ(beside_.own, 0_B) << "of a child";
}

TEST_F(PagerFiles, PagesThatWereThereBeforeAreFound) {
  open_with_file(24_MiB);
  weights_.read(kFile, 5_MiB);
  ASSERT_FALSE(op(0_B, 8_MiB));
  EXPECT_EQ(beside_.there, 8_MiB);
  EXPECT_EQ(beside_.found, 5_MiB) << "three were announced";
  ASSERT_FALSE(op(0_B, 8_MiB));
  EXPECT_EQ(beside_.found, 5_MiB);
}

TEST_F(PagerFiles, AnOpThatCouldRunInSlicesNeedsOneSliceAtOnce) {
  open_with_file(24_MiB);
  ASSERT_FALSE(op(0_B, 16_MiB, std::nullopt, 4_MiB));
  EXPECT_EQ(pager_->take_at_once(), 4_MiB);
  EXPECT_EQ(pager_->counts().files_there, 16_MiB) << "it read the whole";
  ASSERT_FALSE(op(0_B, 16_MiB));
  EXPECT_EQ(pager_->take_at_once(), 16_MiB) << "an op that cannot";
}

TEST_F(PagerFiles, AnOpThatPicksAPartIsNotRefused) {
  open_with_file(24_MiB);
  ASSERT_FALSE(op(0_B, 64_MiB, 1_MiB));
  EXPECT_EQ(pager_->counts().files_there, 1_MiB);
  EXPECT_EQ(pager_->take_at_once(), 1_MiB);
  ASSERT_FALSE(op(0_B, 64_MiB, 40_MiB)) << "it may read less than it may read";
}

// As torch.save() does: no op reads the bytes. Tensors must not be evicted for what can be read again.
TEST_F(PagerFiles, PagesThatWereReadOutsideOpsGoBeforeAStorageIsEvicted) {
  open_with_file(48_MiB);
  weights_.is_mapped = true;
  beside_.seen = [this] { return weights_.in_memory(); };
  const Address kept = make(20_MiB, 1);
  ASSERT_FALSE(op(0_B, 4_MiB));
  weights_.read(kFile + 8_MiB, 24_MiB);
  pager_->trim(kSmallPage);
  EXPECT_EQ(weights_.in_memory(), 28_MiB) << "the growth is not worth a count";
  pager_->trim(16_MiB);
  EXPECT_EQ(weights_.in_memory(), 12_MiB);
  EXPECT_EQ(pager_->counts().files_there, 12_MiB);
  EXPECT_EQ(pager_->counts().spilled, 0_B);
  EXPECT_TRUE(holds(kept, 20_MiB, 1));
}

TEST_F(PagerFiles, PagesOfAnOpInFlightStay) {
  open_with_file(24_MiB);
  make(6_MiB, 1);
  const OpInput input{.storage = kFile, .size = 16_MiB};
  ASSERT_FALSE(pager_->begin_op(1, {&input, 1}));
  weights_.read(kFile, 16_MiB);
  make(6_MiB, 2);
  EXPECT_EQ(pager_->counts().spilled, 6_MiB) << "the first storage";
  EXPECT_EQ(weights_.in_memory(), 16_MiB);
  EXPECT_TRUE(weights_.went.empty());
  pager_->end_op();
}

TEST_F(PagerFiles, WhatTheKernelKeepsIsNotAskedForAgain) {
  open_with_file(24_MiB);
  weights_.stays = true;
  ASSERT_FALSE(op(0_B, 4_MiB));
  make(12_MiB, 1);
  make(12_MiB, 2);
  make(12_MiB, 3);
  EXPECT_EQ(weights_.went.size(), 4u);
  EXPECT_EQ(pager_->counts().files_there, 4_MiB);
}

TEST_F(PagerFiles, PagesOfAFileThatIsNoLongerMappedDoNotCount) {
  open_with_file(24_MiB);
  ASSERT_FALSE(op(0_B, 16_MiB));
  pager_->file_unmapped({kFile + 4_MiB, 8_MiB});
  EXPECT_EQ(pager_->counts().files_there, 8_MiB);
  EXPECT_EQ(beside_.there, 8_MiB);
}

TEST_F(PagerFiles, AForkedChildBeginsWithoutPages) {
  open_with_file(24_MiB);
  ASSERT_FALSE(op(0_B, 16_MiB));
  pager_->before_fork();
  pager_->after_fork_in_child();  // this process plays the child
  EXPECT_EQ(pager_->counts().files_there, 0_B);
  EXPECT_EQ(beside_.there, 0_B);
  weights_.there.clear();
  ASSERT_FALSE(op(0_B, 8_MiB));
  EXPECT_EQ(beside_.there, 8_MiB);
}

TEST_F(PagerFiles, AMappedFileIsAReasonToFollowTheProgram) {
  open_with_file(80_MiB);
  make(1_MiB, 1);
  EXPECT_FALSE(pager_->under_pressure());
  weights_.is_mapped = true;
  make(1_MiB, 2);
  EXPECT_TRUE(pager_->under_pressure());
}

TEST_F(PagerFiles, AFaultInAFileThatIsLetGoIsHealed) {
  open_with_file(24_MiB);
  EXPECT_EQ(pager_->on_fault(kFile + 5_B).what, Pager::Fault::Healed);
  EXPECT_EQ(pager_->on_fault(kFile + kFileSize).what, Pager::Fault::NotOurs);
  int healed = 0;
  while (healed < 1000 && pager_->on_fault(kFile).what == Pager::Fault::Healed) ++healed;
  EXPECT_LT(healed, 1000) << "an access that is never allowed must end the program";
}

}  // namespace
}  // namespace ullage::store
