// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/os_pages.h"

#include "ullage/store/process_memory.h"
#include "ullage/store/store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>

namespace ullage::store {
namespace {

// Runs `body` in a child, in which it can set limits. If `body` fails, the test fails.
void in_limited_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

void set_limit(int what, Bytes bytes) {
  const rlimit limit{bytes.count, bytes.count};
  setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

char* bytes_at(Address a) { return reinterpret_cast<char*>(a.value); }

std::size_t mappings_of_this_process() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

TEST(OsPages, ReservesWithoutBytes) {
  const Bytes before = resident_now();
  OsPages pages;
  const auto all = pages.reserve(1024_GiB);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->begin.value % kHugePage.count, 0u);
  EXPECT_LE(resident_now(), before + 1_MiB);
}

TEST(OsPages, FillsMovesAndDrops) {
  OsPages pages;
  const Address base = pages.reserve(4_GiB)->begin;
  const Bytes before = resident_now();
  ASSERT_TRUE(pages.fill(base, 64_MiB, PageKind::Huge));
  EXPECT_EQ(*bytes_at(base), 0) << "zeroed";
  EXPECT_NEAR(double((resident_now() - before).count), double((64_MiB).count), double((1_MiB).count));
  bytes_at(base)[(64_MiB).count - 1] = 42;
  ASSERT_TRUE(pages.move(base, base + 1_GiB, 64_MiB));
  EXPECT_EQ(bytes_at(base + 1_GiB)[(64_MiB).count - 1], 42);
  EXPECT_NEAR(double((resident_now() - before).count), double((64_MiB).count), double((1_MiB).count));
  EXPECT_EXIT(*bytes_at(base) = 1, testing::KilledBySignal(SIGSEGV), "") << "the old address is empty";
  pages.drop(base + 1_GiB, 64_MiB);
  EXPECT_LE(resident_now(), before + 1_MiB);
}

TEST(OsPages, ReturnsMappingsToTheSystem) {
  OsPages pages;
  const Address base = pages.reserve(4_GiB)->begin;
  const std::size_t before = mappings_of_this_process();
  for (std::uint64_t i = 0; i < 512; i += 2) ASSERT_TRUE(pages.fill(base + 64_KiB * i, 64_KiB, PageKind::Small));
  EXPECT_GT(mappings_of_this_process(), before + 400);
  for (std::uint64_t i = 0; i < 512; i += 2) pages.drop(base + 64_KiB * i, 64_KiB);
  EXPECT_LE(mappings_of_this_process(), before + 4) << "empty neighbours merge again";
}

TEST(OsPages, TakesASmallerReservationUnderALimitOfAddressSpace) {
  in_limited_child([] {
    set_limit(RLIMIT_AS, 8_GiB);
    OsPages pages;
    const auto all = pages.reserve(1024_GiB);
    return all && all->size < 8_GiB && all->size >= 1_GiB && pages.fill(all->begin, 4_MiB, PageKind::Huge);
  });
  in_limited_child([] {
    set_limit(RLIMIT_AS, 512_MiB);
    OsPages pages;
    const auto all = pages.reserve(1024_GiB);
    return !all && all.error().message.find("ulimit -v") != std::string::npos;
  });
}

// RLIMIT_DATA counts writable private bytes, as strict overcommit does.
TEST(OsPages, TheSystemsRefusalIsARefusal) {
  in_limited_child([] {
    set_limit(RLIMIT_DATA, 200_MiB);
    OsPages pages;
    FixedLimit limit(1_GiB);
    auto made = Store::create(pages, limit);
    if (!made) return false;
    Store& store = **made;
    std::vector<Address> held;
    for (int i = 0; i < 100; ++i) {
      const auto placed = store.allocate(10_MiB);
      if (const auto* refusal = std::get_if<Refusal>(&placed)) {
        const bool right = refusal->reason == Refusal::Reason::Device && held.size() >= 10 && held.size() < 20;
        for (const Address at : held) store.free(at);  // the store must stay usable
        return right && std::holds_alternative<Address>(store.allocate(100_MiB));
      }
      held.push_back(std::get<Address>(placed));
      std::memset(bytes_at(held.back()), 1, (10_MiB).count);
    }
    return false;
  });
}

// Pages that are reused or given back leave no commit charge: the same bytes can be allocated again and again.
TEST(OsPages, HandingOnLeaksNoCommitCharge) {
  in_limited_child([] {
    set_limit(RLIMIT_DATA, 300_MiB);
    OsPages pages;
    FixedLimit limit(100_MiB);
    auto made = Store::create(pages, limit);
    if (!made) return false;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const auto placed = (*made)->allocate(60_MiB + 2_MiB * (i % 15));
      if (!std::holds_alternative<Address>(placed)) return false;
      (*made)->free(std::get<Address>(placed));
    }
    return true;
  });
}

TEST(OsPages, WorksWithoutHugePages) {
  in_limited_child([] {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    OsPages pages;
    const Address base = pages.reserve(4_GiB)->begin;
    const Bytes before = resident_now();
    return pages.fill(base, 64_MiB, PageKind::Huge) && pages.move(base, base + 1_GiB, 64_MiB) &&
           resident_now() >= before + 63_MiB && resident_now() <= before + 65_MiB;
  });
}

}  // namespace
}  // namespace ullage::store
