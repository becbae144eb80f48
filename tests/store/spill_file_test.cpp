// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/spill_file.h"

#include "spill_test.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

namespace ullage::store {
namespace {

using SpillFileTest = SpillTest;

TEST_F(SpillFileTest, GivesBackWhatWasWritten) {
  for (const bool checksums : {false, true}) {
    auto file = open(64_MiB, with(checksums));
    TestPages out(20_MiB), in(20_MiB);  // more than one transfer
    out.stamp(7);
    const SpillSlot slot = take(*file, 20_MiB);
    ASSERT_TRUE(file->write(slot, out.address()).ok());
    ASSERT_TRUE(file->read(slot, in.address()).ok());
    EXPECT_TRUE(in.is_stamped(7, 20_MiB));
    const SpillCounts counts = file->counts();
    EXPECT_EQ(counts.in_use, 20_MiB);
    EXPECT_EQ(counts.written, 20_MiB);
    EXPECT_EQ(counts.read, 20_MiB);
    EXPECT_EQ(counts.file_bytes, 20_MiB);
    EXPECT_GT(counts.write_us, 0u);
    EXPECT_GT(counts.read_us, 0u);
    file->give(slot);
    EXPECT_EQ(file->counts().in_use, 0_B);
    EXPECT_EQ(file->counts().in_use_peak, 20_MiB);
  }
}

TEST_F(SpillFileTest, HasNoNameAndStandsAboveTheDescriptorsOfScripts) {
  auto file = open(1_MiB);
  EXPECT_TRUE(folder_is_empty());
  EXPECT_GE(file->descriptor(), 100);
  EXPECT_NE(fcntl(file->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(SpillFileTest, ReusesSpaceThatWasGivenBack) {
  auto file = open(64_MiB);
  const SpillSlot a = take(*file, 8_MiB), b = take(*file, 4_MiB), c = take(*file, 2_MiB);
  file->give(a);
  file->give(c);
  EXPECT_EQ(take(*file, 2_MiB).offset, c.offset) << "the smallest gap that is large enough";
  EXPECT_EQ(take(*file, 8_MiB).offset, a.offset);
  file->give(b);
  const SpillSlot again = take(*file, 4_MiB);
  EXPECT_EQ(again.offset, b.offset);
  EXPECT_NE(again.serial, b.serial);
  EXPECT_EQ(file->counts().file_bytes, 14_MiB);
  TestPages pages(4_MiB);
  EXPECT_THROW(file->give(b), ContractError) << "a slot of an earlier use";
  EXPECT_THROW((void)file->write(b, pages.address()), ContractError);
  EXPECT_THROW((void)file->take(100_B), ContractError);
}

TEST_F(SpillFileTest, SaysWhenItsBoundIsReached) {
  auto file = open(8_MiB);
  const SpillSlot first = take(*file, 5_MiB);
  const Result<SpillSlot> second = file->take(4_MiB);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().text(),
            folder_ +
                ": no room for 4.00 MiB (4194304 bytes) more in the spill file, 5.00 MiB of 8.00 MiB "
                "(8388608 bytes) in use; raise its bound with --spill DIR:SIZE");
  file->give(first);
  take(*file, 8_MiB);
}

// The file must reach its bound also if the free space is in pieces between slots.
TEST_F(SpillFileTest, ReachesItsBoundInPiecesToo) {
  auto file = open(16_MiB);
  std::vector<SpillSlot> slots;
  for (int i = 0; i < 16; ++i) slots.push_back(take(*file, 1_MiB));
  TestPages pages(8_MiB);
  pages.stamp(5);
  ASSERT_TRUE(file->write(slots[1], pages.address()).ok());
  for (std::size_t i = 0; i < 16; i += 2) file->give(slots[i]);
  const Result<SpillSlot> large = file->take(8_MiB);
  if (!large.ok() && large.error().kind == Error::Kind::System) GTEST_SKIP() << large.error().text();
  ASSERT_TRUE(large.ok()) << large.error().text();
  EXPECT_EQ(file->counts().file_bytes, 16_MiB);
  ASSERT_TRUE(file->write(*large, pages.address()).ok());
  TestPages in(8_MiB);
  ASSERT_TRUE(file->read(slots[1], in.address()).ok());
  EXPECT_TRUE(in.is_stamped(5, 1_MiB));
  ASSERT_TRUE(file->read(*large, in.address()).ok());
  EXPECT_TRUE(in.is_stamped(5, 8_MiB));
  EXPECT_FALSE(file->take(4_KiB).ok());
}

struct Block {
  SpillSlot slot;
  std::uint64_t who;
};

void expect_apart(const std::map<std::uint64_t, Block>& blocks, const SpillSlot& slot) {
  const auto next = blocks.lower_bound(slot.offset);
  if (next != blocks.end()) {
    ASSERT_LE(slot.offset + slot.size.count, next->first);
  }
  if (next != blocks.begin()) {
    const SpillSlot& before = std::prev(next)->second.slot;
    ASSERT_LE(before.offset + before.size.count, slot.offset);
  }
}

// Takes, writes, reads and gives slots at random, and compares with a map of what must be there.
void random_work(SpillFile& file, std::uint64_t seed, int rounds, bool alone) {
  constexpr Bytes kMost = 2_MiB;
  std::mt19937_64 random(seed);
  std::map<std::uint64_t, Block> blocks;
  Bytes in_use{};
  TestPages pages(kMost);
  for (int i = 0; i < rounds; ++i) {
    if (random() % 5 < 3) {
      const Bytes size = 4_KiB * (1 + random() % (random() % 4 == 0 ? 512 : 40));
      const Result<SpillSlot> slot = file.take(size);
      if (slot.ok()) {
        ASSERT_NO_FATAL_FAILURE(expect_apart(blocks, *slot));
        const std::uint64_t who = random();
        pages.stamp(who);
        ASSERT_TRUE(file.write(*slot, pages.address()).ok());
        blocks[slot->offset] = {*slot, who};
        in_use += size;
        continue;
      }
      if (alone) {
        ASSERT_GT(in_use + size, file.place().most) << slot.error().text();
      }
    }
    if (blocks.empty()) continue;
    auto it = std::next(blocks.begin(), static_cast<long>(random() % blocks.size()));
    const SpillSlot slot = it->second.slot;
    ASSERT_TRUE(file.read(slot, pages.address()).ok());
    ASSERT_TRUE(pages.is_stamped(it->second.who, slot.size)) << "the slot's bytes were changed by another";
    if (random() % 3 == 0) continue;
    file.give(slot);
    in_use -= slot.size;
    blocks.erase(it);
    if (alone) {
      ASSERT_EQ(file.counts().in_use, in_use);
    }
    ASSERT_LE(file.counts().file_bytes, file.place().most);
  }
  for (const auto& [offset, block] : blocks) file.give(block.slot);
}

TEST_F(SpillFileTest, HoldsAgainstAModel) {
  for (const bool checksums : {false, true}) {
    auto file = open(24_MiB, with(checksums));
    random_work(*file, 1, 500, true);
    EXPECT_EQ(file->counts().in_use, 0_B);
    take(*file, 24_MiB);
  }
}

TEST_F(SpillFileTest, HoldsAgainstModelsOfSeveralThreads) {
  auto file = open(24_MiB, with(true));
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back([&file, t] { random_work(*file, t, 150, false); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file->counts().in_use, 0_B);
}

TEST_F(SpillFileTest, SaysThatPagesWereTakenAway) {
  for (const bool checksums : {false, true}) {
    auto file = open(8_MiB, with(checksums));
    TestPages pages(4_MiB, 1);
    const SpillSlot slot = take(*file, 4_MiB);
    ASSERT_EQ(mprotect(pages.data() + (2_MiB).count, (1_MiB).count, PROT_NONE), 0);
    const Status written = file->write(slot, pages.address());
    ASSERT_FALSE(written.ok());
    EXPECT_TRUE(SpillFile::pages_are_gone(written.error())) << written.error().text();
    TestPages in(4_MiB);
    EXPECT_EQ(file->read(slot, in.address()).error().kind, Error::Kind::BadFile) << "half a write is none";
    ASSERT_EQ(mprotect(pages.data(), (4_MiB).count, PROT_READ), 0);
    ASSERT_TRUE(file->write(slot, pages.address()).ok());
    ASSERT_TRUE(file->read(slot, in.address()).ok());
    EXPECT_EQ(in.data()[(3_MiB).count], 1);
    file->give(slot);
  }
}

TEST_F(SpillFileTest, NoticesThatItWasCutShort) {
  auto file = open(8_MiB, with(false));
  TestPages pages(4_MiB, 1);
  const SpillSlot slot = take(*file, 4_MiB);
  ASSERT_TRUE(file->write(slot, pages.address()).ok());
  const std::string name = "/proc/self/fd/" + std::to_string(file->descriptor());
  ASSERT_EQ(truncate(name.c_str(), (1_MiB).count + 100), 0);
  const Status read = file->read(slot, pages.address());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Error::Kind::BadFile);
  EXPECT_NE(read.error().message.find("cut short: 1048676 of 4194304 bytes"), std::string::npos)
      << read.error().message;
}

TEST_F(SpillFileTest, NoticesAChangedByte) {
  auto file = open(8_MiB, with(true));
  TestPages pages(4_MiB, 1);
  const SpillSlot slot = take(*file, 4_MiB);
  ASSERT_TRUE(file->write(slot, pages.address()).ok());
  const std::string name = "/proc/self/fd/" + std::to_string(file->descriptor());
  const Descriptor other(::open(name.c_str(), O_WRONLY));
  const char changed = 2;
  ASSERT_EQ(pwrite(other.number(), &changed, 1, static_cast<off_t>(slot.offset + 3000000)), 1);
  const Status read = file->read(slot, pages.address());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Error::Kind::BadFile);
  EXPECT_NE(read.error().message.find("other bytes than were written"), std::string::npos) << read.error().message;
}

// A program may close descriptors that are not its own and then open files, which get the same numbers. The spill file
// must not write to those.
TEST_F(SpillFileTest, NeverTouchesAFileThatTookItsNumber) {
  auto file = open(8_MiB, with(false));
  TestPages pages(1_MiB, 1);
  const SpillSlot slot = take(*file, 1_MiB);
  ASSERT_TRUE(file->write(slot, pages.address()).ok());
  const Descriptor precious(::open((folder_ + "/precious").c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_GE(dup2(precious.number(), file->descriptor()), 0);
  EXPECT_FALSE(file->write(slot, pages.address()).ok());
  EXPECT_EQ(file->read(slot, pages.address()).error().kind, Error::Kind::BadFile) << "the failed write left nothing";
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/precious"), 0u);
  const int taken = file->descriptor();
  file.reset();
  EXPECT_GE(fcntl(taken, F_GETFD), 0) << "closed somebody else's file";
  ::close(taken);
}

TEST_F(SpillFileTest, ReadsOnlyFromItself) {
  auto file = open(8_MiB, with(false));
  TestPages pages(1_MiB, 1);
  const SpillSlot slot = take(*file, 1_MiB);
  ASSERT_TRUE(file->write(slot, pages.address()).ok());
  const int taken = file->descriptor();
  ASSERT_GE(dup2(0, taken), 0);
  const Status read = file->read(slot, pages.address());
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("closed the spill file's descriptor"), std::string::npos);
  file.reset();
  ::close(taken);
}

}  // namespace
}  // namespace ullage::store
