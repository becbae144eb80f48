// SPDX-License-Identifier: Apache-2.0
// Each system call of the spill file fails in turn. The result must be an error with its reason, never wrong bytes.
#include "spill_test.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace ullage::store {
namespace {

// Makes the n-th call fail or fall short; the other calls go to the system.
struct Script {
  int fail_at = -1;
  int error = 0;  // 0: a short transfer of `part` bytes
  ssize_t part = 0;
  int calls = 0;
  bool again = false;  // every later call fails, too
  bool now() {
    const int call = calls++;
    return call == fail_at || (again && call > fail_at);
  }
};
Script writes, reads, allocations;  // globals, because the calls are plain functions

ssize_t scripted_write(int fd, const void* from, size_t size, off_t at) {
  if (!writes.now()) return pwrite(fd, from, size, at);
  if (writes.error != 0) return errno = writes.error, -1;
  return writes.part == 0 ? 0 : pwrite(fd, from, static_cast<size_t>(writes.part), at);
}
ssize_t scripted_read(int fd, void* into, size_t size, off_t at) {
  if (!reads.now()) return pread(fd, into, size, at);
  if (reads.error != 0) return errno = reads.error, -1;
  return reads.part == 0 ? 0 : pread(fd, into, static_cast<size_t>(reads.part), at);
}
int scripted_allocate(int fd, int mode, off_t at, off_t size) {
  if (!allocations.now()) return fallocate(fd, mode, at, size);
  return errno = allocations.error, -1;
}
int no_unnamed_files(const char*) { return errno = EOPNOTSUPP, -1; }

class SpillFailureTest : public SpillTest {
 protected:
  void SetUp() override {
    writes = reads = allocations = {};
    SpillTest::SetUp();
  }
  static SpillFile::Options scripted(bool checksums) {
    SpillCalls calls = SpillCalls::system();
    calls.write = scripted_write, calls.read = scripted_read, calls.allocate = scripted_allocate;
    return {.checksums = checksums, .calls = calls};
  }
};

constexpr Bytes kSlot = 40_MiB;  // three transfers

TEST_F(SpillFailureTest, EachWriteInTurn) {
  TestPages out(kSlot), in(kSlot);
  out.stamp(3);
  for (const bool checksums : {false, true}) {
    for (int call = 0; call < 3; ++call) {
      for (const int error : {EIO, call == 1 ? EDQUOT : ENOSPC}) {
        auto file = open(kSlot, scripted(checksums));
        const SpillSlot slot = take(*file, kSlot);
        writes = {.fail_at = call, .error = error};
        const Status failed = file->write(slot, out.address());
        ASSERT_FALSE(failed.ok());
        EXPECT_EQ(failed.error().kind, Error::Kind::System);
        EXPECT_EQ(failed.error().where, folder_);
        EXPECT_NE(failed.error().message.find(strerror(error)), std::string::npos) << failed.error().message;
        EXPECT_EQ(failed.error().message.find("bytes) free there") != std::string::npos, error != EIO);
        EXPECT_EQ(file->read(slot, in.address()).error().kind, Error::Kind::BadFile);
        EXPECT_EQ(file->counts().written, 0_B);
        ASSERT_TRUE(file->write(slot, out.address()).ok()) << "may be written again";
        ASSERT_TRUE(file->read(slot, in.address()).ok());
        EXPECT_TRUE(in.is_stamped(3, kSlot));
        file->give(slot);
      }
    }
  }
}

TEST_F(SpillFailureTest, EachReadInTurn) {
  TestPages out(kSlot), in(kSlot);
  out.stamp(3);
  auto file = open(kSlot, scripted(true));
  const SpillSlot slot = take(*file, kSlot);
  ASSERT_TRUE(file->write(slot, out.address()).ok());
  for (int call = 0; call < 3; ++call) {
    reads = {.fail_at = call, .error = EIO};
    const Status failed = file->read(slot, in.address());
    ASSERT_FALSE(failed.ok());
    EXPECT_NE(failed.error().message.find(strerror(EIO)), std::string::npos);
    reads = {.fail_at = call};  // the call transfers no bytes, as at the end of a file
    EXPECT_EQ(file->read(slot, in.address()).error().kind, Error::Kind::BadFile);
    EXPECT_EQ(file->counts().read, 0_B);
  }
  ASSERT_TRUE(file->read(slot, in.address()).ok());
  EXPECT_TRUE(in.is_stamped(3, kSlot));
}

TEST_F(SpillFailureTest, CarriesOnAfterShortAndInterruptedTransfers) {
  TestPages out(kSlot), in(kSlot);
  out.stamp(4);
  const std::vector<Script> scripts = {
      {.fail_at = 0, .part = 4096}, {.fail_at = 1, .part = (1_MiB).count}, {.fail_at = 2, .error = EINTR}};
  for (const Script& script : scripts) {
    for (const bool checksums : {false, true}) {
      auto file = open(kSlot, scripted(checksums));
      const SpillSlot slot = take(*file, kSlot);
      writes = reads = script;
      ASSERT_TRUE(file->write(slot, out.address()).ok());
      ASSERT_TRUE(file->read(slot, in.address()).ok());
      EXPECT_TRUE(in.is_stamped(4, kSlot));
    }
  }
}

TEST_F(SpillFailureTest, LeavesDirectTransfersWhereTheyAreRefused) {
  TestPages out(kSlot), in(kSlot);
  out.stamp(5);
  auto file = open(kSlot, scripted(false));
  if (!file->past_the_cache()) GTEST_SKIP() << "no transfers past the page cache in " << folder_;
  const SpillSlot slot = take(*file, kSlot);
  writes = {.fail_at = 0, .error = EINVAL};
  ASSERT_TRUE(file->write(slot, out.address()).ok());
  EXPECT_FALSE(file->past_the_cache());
  ASSERT_TRUE(file->read(slot, in.address()).ok());
  EXPECT_TRUE(in.is_stamped(5, kSlot));
  writes = {.fail_at = 0, .error = EINVAL};
  EXPECT_FALSE(file->write(slot, out.address()).ok()) << "refused for another reason, then";
}

TEST_F(SpillFailureTest, FullDiskIsKnownWhenTheSlotIsTaken) {
  auto file = open(64_MiB, scripted(false));
  const SpillSlot slot = take(*file, 8_MiB);
  allocations = {.fail_at = 0, .error = ENOSPC, .again = true};
  const Result<SpillSlot> none = file->take(16_MiB);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("cannot write 16.00 MiB to the spill file: No space left on device, "),
            std::string::npos)
      << none.error().message;
  EXPECT_EQ(file->counts().in_use, 8_MiB);
  EXPECT_EQ(file->counts().file_bytes, 8_MiB);
  // If the disk is full, gaps in the file are freed before a larger slot is refused.
  file->give(slot);
  allocations = {.fail_at = 0, .error = ENOSPC};
  take(*file, 16_MiB);
  EXPECT_EQ(file->counts().file_bytes, 16_MiB);
}

TEST_F(SpillFailureTest, DoesWithoutAPromiseOfBlocks) {
  auto file = open(16_MiB, scripted(false));
  allocations = {.fail_at = 0, .error = EOPNOTSUPP, .again = true};
  const SpillSlot a = take(*file, 4_MiB), b = take(*file, 4_MiB), c = take(*file, 4_MiB);
  TestPages out(4_MiB), in(4_MiB);
  out.stamp(6);
  ASSERT_TRUE(file->write(c, out.address()).ok());
  file->give(a);
  const Result<SpillSlot> large = file->take(8_MiB);
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().message.find("in pieces that cannot be joined"), std::string::npos);
  EXPECT_EQ(file->counts().file_bytes, 12_MiB) << "what was not taken back is still the file's";
  take(*file, 4_MiB);
  take(*file, 4_MiB);
  file->give(b);
  ASSERT_TRUE(file->read(c, in.address()).ok());
  EXPECT_TRUE(in.is_stamped(6, 4_MiB));
}

std::atomic<bool> write_began{false}, write_ended{false};

ssize_t slow_write(int fd, const void* from, size_t size, off_t at) {
  write_began = true;
  usleep(50000);
  const ssize_t moved = pwrite(fd, from, size, at);
  write_ended = true;
  return moved;
}

// A fork during a direct transfer (past the page cache) would mix up the pages of parent and child.
TEST_F(SpillFailureTest, ForksWaitForTransfersUnderWay) {
  write_began = write_ended = false;
  SpillFile::Options options = scripted(false);
  options.calls.write = slow_write;
  auto file = open(8_MiB, options);
  const SpillSlot slot = take(*file, 4_MiB);
  TestPages pages(4_MiB);
  std::thread writer([&] { EXPECT_TRUE(file->write(slot, pages.address()).ok()); });
  while (!write_began) usleep(1000);
  file->before_fork();
  EXPECT_TRUE(write_ended);
  file->after_fork_in_parent();
  writer.join();
}

TEST_F(SpillFailureTest, HasNoNameWhereUnnamedFilesAreUnknown) {
  SpillFile::Options options;
  options.calls.open_unnamed = no_unnamed_files;
  auto file = open(8_MiB, options);
  EXPECT_TRUE(folder_is_empty());
  TestPages pages(1_MiB, 1);
  const SpillSlot slot = take(*file, 1_MiB);
  ASSERT_TRUE(file->write(slot, pages.address()).ok());
  ASSERT_TRUE(file->read(slot, pages.address()).ok());
}

TEST_F(SpillFailureTest, SaysWhereNoFileCanBeMade) {
  const Result<std::unique_ptr<SpillFile>> none = SpillFile::open({folder_ + "/gone", 1_MiB}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().text(), folder_ +
                                     "/gone: cannot make the spill file: No such file or directory; name another "
                                     "folder with --spill DIR");
}

}  // namespace
}  // namespace ullage::store
