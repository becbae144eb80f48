// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/os_file_pages.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

namespace ullage::store {
namespace {

constexpr Bytes kSize = 2_MiB;

// A file of kSize that is mapped for this process alone. Each page begins with its own number.
class MappedFile final {
 public:
  explicit MappedFile(int access = PROT_READ | PROT_WRITE) {
    std::FILE* const file = std::tmpfile();
    std::array<std::uint64_t, kSmallPage.count / sizeof(std::uint64_t)> page{};
    for (std::uint64_t i = 0; i < kSize.count / kSmallPage.count; ++i) {
      page[0] = i;
      if (std::fwrite(page.data(), sizeof(page), 1, file) != 1) ADD_FAILURE() << "the file could not be written";
    }
    std::fflush(file);
    at_ = mmap(nullptr, kSize.count, access, MAP_PRIVATE, fileno(file), 0);
    std::fclose(file);
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~MappedFile() { munmap(at_, kSize.count); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Address at() const { return {reinterpret_cast<std::uint64_t>(at_)}; }
  AddressRange range() const { return {at(), kSize}; }
  // The first word of a page. Reading it brings the page into memory.
  volatile std::uint64_t& word(std::uint64_t page) const {
    return *reinterpret_cast<volatile std::uint64_t*>(at().value + page * kSmallPage.count);
  }
  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < kSize.count / kSmallPage.count; ++i) all += word(i);
    return all;
  }

 private:
  void* at_ = nullptr;
};

TEST(OsFilePages, LetsPagesGoAndTheFileBringsThemBack) {
  const MappedFile file;
  OsFilePages pages;
  pages.mapped_at(file.at(), kSize, true);
  const std::uint64_t sum = file.sum();
  EXPECT_EQ(pages.count(file.range()).of_file, kSize);
  EXPECT_EQ(pages.let_go({file.at(), 1_MiB}), 0_B);
  EXPECT_EQ(pages.count({file.at(), 1_MiB}).there, 0_B);
  EXPECT_EQ(pages.count(file.range()).there, 1_MiB) << "the other half stays";
  EXPECT_EQ(file.sum(), sum);
}

TEST(OsFilePages, LeavesAloneWhatIsAboutToBeUnmapped) {
  const MappedFile file;
  OsFilePages pages;
  pages.mapped_at(file.at(), kSize, true);
  file.sum();
  EXPECT_TRUE(pages.unmapped_at(file.at(), kSize));
  EXPECT_EQ(pages.let_go({file.at(), 1_MiB}), 1_MiB) << "nothing went";
  pages.mapped_at(file.at(), kSize, true);
  EXPECT_EQ(pages.count(file.range()).of_file, kSize);
}

TEST(OsFilePages, KeepsWhatWasWritten) {
  const MappedFile file;
  OsFilePages pages;
  pages.mapped_at(file.at(), kSize, true);
  file.sum();
  for (const std::uint64_t page : {3, 4, 100, 511}) file.word(page) = 7000 + page;
  EXPECT_EQ(pages.count(file.range()).of_file, kSize - kSmallPage * 4);
  EXPECT_EQ(pages.let_go(file.range()), 0_B);
  EXPECT_EQ(pages.count(file.range()).there, kSmallPage * 4);
  for (const std::uint64_t page : {3, 4, 100, 511}) EXPECT_EQ(file.word(page), 7000 + page);
  EXPECT_EQ(file.word(5), 5u);
  file.word(5) = 1;  // the access is as before
  EXPECT_EQ(file.word(5), 1u);
}

TEST(OsFilePages, LeavesAMappingThatMayOnlyBeReadAsItIs) {
  const MappedFile file(PROT_READ);
  OsFilePages pages;
  pages.mapped_at(file.at(), kSize, false);
  const std::uint64_t sum = file.sum();
  EXPECT_EQ(pages.let_go(file.range()), 0_B);
  EXPECT_EQ(file.sum(), sum);
  EXPECT_DEATH(file.word(0) = 1, "") << "it may still only be read";
}

TEST(OsFilePages, KnowsWhatIsMapped) {
  OsFilePages pages;
  EXPECT_FALSE(pages.unmapped_at({(1_MiB).count}, 1_MiB));
  pages.mapped_at({(8_MiB).count}, 4_MiB, true);
  EXPECT_EQ(pages.mapped(), 4_MiB);
  EXPECT_TRUE(pages.holds({(8_MiB).count}));
  EXPECT_FALSE(pages.holds({(12_MiB).count}));
  EXPECT_FALSE(pages.unmapped_at({(4_MiB).count}, 4_MiB)) << "ends where it begins";
  EXPECT_TRUE(pages.unmapped_at({(9_MiB).count}, 1_MiB)) << "a hole in it";
  EXPECT_EQ(pages.mapped(), 3_MiB);
  EXPECT_TRUE(pages.holds({(9_MiB).count - 1}));
  EXPECT_FALSE(pages.holds({(9_MiB).count}));
  EXPECT_TRUE(pages.holds({(10_MiB).count}));
  pages.mapped_at({(11_MiB).count}, 4_MiB, true);  // another file over its end
  EXPECT_EQ(pages.mapped(), 6_MiB);
  EXPECT_TRUE(pages.unmapped_at({0}, 1_GiB));
  EXPECT_EQ(pages.mapped(), 0_B);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::atomic<int> faults{0};

// While pages are let go, the mapping is read-only for a moment. A write in it gets a fault and is simply tried again.
TEST(OsFilePages, LosesNoWriteOfAnotherThread) {
  const MappedFile file;
  OsFilePages pages;
  pages.mapped_at(file.at(), kSize, true);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { ++faults; };
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) pages.let_go(file.range());
  });
  std::uint64_t lost = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    for (std::uint64_t page = 0; page < 512; ++page) file.word(page) = 1000 * round + page;
    for (std::uint64_t page = 0; page < 512; ++page) lost += file.word(page) != 1000 * round + page;
    madvise(reinterpret_cast<void*>(file.at().value), kSize.count, MADV_DONTNEED);  // unwritten again
  }
  done = true;
  other.join();
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(lost, 0u);
}
#endif

}  // namespace
}  // namespace ullage::store
