// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by the tests of the spill tier: a folder on a disk, pages to spill, and a fixture.

#include "ullage/store/spill_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

namespace ullage::store {

// Pages of memory at a multiple of 4096, like the store's.
class TestPages final {
 public:
  explicit TestPages(Bytes size, char fill = 0) : size_(size) {
    at_ = static_cast<char*>(mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(at_, fill, size.count);
  }
  TestPages(const TestPages&) = delete;
  TestPages& operator=(const TestPages&) = delete;
  ~TestPages() { munmap(at_, size_.count); }

  Address address() const { return {reinterpret_cast<std::uint64_t>(at_)}; }
  char* data() { return at_; }
  Bytes size() const { return size_; }
  // Fills the pages so that every word depends on its place and on `who`.
  void stamp(std::uint64_t who) {
    for (std::uint64_t i = 0; i < size_.count; i += 8) {
      const std::uint64_t word = who * 0x9e3779b97f4a7c15u + i;
      std::memcpy(at_ + i, &word, 8);
    }
  }
  bool is_stamped(std::uint64_t who, Bytes part) const {
    for (std::uint64_t i = 0; i < part.count; i += 8) {
      const std::uint64_t word = who * 0x9e3779b97f4a7c15u + i;
      if (std::memcmp(at_ + i, &word, 8) != 0) return false;
    }
    return true;
  }

 private:
  char* at_;
  Bytes size_;
};

// Gives each test its own folder on a disk. The tests are skipped, with the reason, if there is no such place.
class SpillTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<SpillPlace> place = default_spill_place();
    if (!place) GTEST_SKIP() << place.error().text();
    std::string path = place->folder + "/spill-test-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::unique_ptr<SpillFile> open(Bytes most, const SpillFile::Options& options = {}) {
    Result<std::unique_ptr<SpillFile>> file = SpillFile::open({folder_, most}, options);
    EXPECT_TRUE(file.ok()) << file.error().text();
    return std::move(file).value();
  }
  static SpillFile::Options with(bool checksums) { return {.checksums = checksums, .calls = SpillCalls::system()}; }
  bool folder_is_empty() const { return std::filesystem::is_empty(folder_); }

  std::string folder_;
};

inline SpillSlot take(SpillFile& file, Bytes size) {
  Result<SpillSlot> slot = file.take(size);
  EXPECT_TRUE(slot.ok()) << slot.error().text();
  return slot.ok() ? *slot : SpillSlot{};
}

}  // namespace ullage::store
