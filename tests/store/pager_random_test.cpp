// SPDX-License-Identifier: Apache-2.0
// Random operations of a program and of a plan on the pager, compared with a model that knows what every storage holds.
// A million run without memory behind the addresses, to test the bookkeeping; fewer run on real memory, to test the
// bytes.
#include "pager_fixture.h"
#include "refill.h"
#include "seeds.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace ullage::store {
namespace {

constexpr Bytes kLimit = 12_MiB;
constexpr Bytes kLargest = 7_MiB;  // there is no room for two

class Program final {
 public:
  Program(Pager& pager, Refill& refill, Refill::Fill fill, bool real)
      : pager_(pager), refill_(refill), fill_(std::move(fill)), real_(real) {}

  void step(std::uint64_t draw) {
    if (storages_.size() < 8 || (storages_.size() < 40 && draw % 100 < 10)) return allocate(draw >> 8);
    const Address at = pick(draw >> 8);
    switch (draw % 16) {
      case 0:
      case 1:
        return free(at);
      case 2:
      case 3:
      case 4:
        return op(draw >> 16);
      case 5:
      case 6:
        dropped_ += pager_.planned().drop(at) ? 1 : 0;
        return;
      case 7:
        pager_.planned().spill(at);
        return;
      case 8:
        return pager_.planned().write_ahead(at);
      case 9:
      case 10:
        return pager_.planned().read_ahead(at);
      case 11:
        return replace(at);
      case 12:
        if (draw % 256 == 12) return copy_more_than_fits(draw >> 16);
        ASSERT_FALSE(pager_.bring_back(at + 100_B));
        return;
      default:
        if (real_) check(at);
    }
  }
  void check_counts(const Store& store) const {
    const auto [pages, moves] = counts(store);
    ASSERT_EQ(pages.live, live_);
    ASSERT_EQ(pages.vacated, moves.spilled_now + moves.dropped_now);
    ASSERT_GE(pages.present + pages.vacated, pages.live);  // staged pages come on top
    ASSERT_LE(pages.present, pages.resident - pages.idle);
    ASSERT_LE(pages.present, pages.present_peak);
    ASSERT_EQ(moves.recomputed, refill_.calls());
  }
  void end() {
    for (const auto& [at, storage] : storages_) {
      if (real_) check(at);
      pager_.free(at);
    }
    storages_.clear();
    live_ = {};
  }
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t copied() const { return copied_; }

 private:
  struct Storage {
    Bytes size;
    std::uint64_t seed = 0;
  };
  // Returns both counts of one moment. It tries again if the background moved something between the two.
  std::pair<StoreCounts, PagerCounts> counts(const Store& store) const {
    for (;;) {
      const PagerCounts before = pager_.counts();
      const StoreCounts pages = store.counts();
      const PagerCounts after = pager_.counts();
      if (before.spilled == after.spilled && before.restored == after.restored) return {pages, after};
    }
  }
  static Bytes draw_size(std::uint64_t draw) {
    static constexpr std::uint64_t kShapes[] = {65536, 131072, 524288, 65536 + 8, 2097152, 2162688};
    return Bytes{kShapes[draw % std::size(kShapes)]};
  }
  Address pick(std::uint64_t draw) const {
    return std::next(storages_.begin(), static_cast<long>(draw % storages_.size()))->first;
  }
  void fill(Address at, Storage& storage) {
    storage.seed = ++seed_;
    fill_(at, storage.size, storage.seed);
    refill_.know(at, storage.size, storage.seed);
  }
  void check(Address at) const {
    const Storage& storage = storages_.at(at);
    ASSERT_TRUE(PagerTest::holds(at, storage.size, storage.seed)) << "storage of " << storage.size.count;
  }
  void allocate(std::uint64_t draw) {
    const Bytes size = draw_size(draw);
    const auto placed = pager_.allocate(size);
    ASSERT_TRUE(std::holds_alternative<Address>(placed));
    const Address at = std::get<Address>(placed);
    fill(at, storages_[at] = {size, 0});
    live_ += size;
  }
  void free(Address at) {
    ASSERT_EQ(pager_.free(at), storages_.at(at).size);
    live_ -= storages_.at(at).size;
    storages_.erase(at);
  }
  // Runs an op that reads two storages, and changes the first or makes a new one.
  void op(std::uint64_t draw) {
    const bool writes = draw % 2 == 0;
    const Address first = pick(draw >> 4);
    const Address second = pick(draw >> 20);
    const std::vector<OpInput> inputs{{first, storages_.at(first).size, writes}, {second, storages_.at(second).size}};
    ASSERT_FALSE(pager_.begin_op(draw % 31, inputs));
    ASSERT_FALSE(pager_.planned().drop(first));
    if (real_) check(first), check(second);
    if (writes) fill(first, storages_.at(first));
    if (draw % 5 == 0) allocate(draw >> 9);
    pager_.end_op(draw % 3 != 0);
  }
  // Copies one storage over another, while there is room for one of them only.
  void copy_more_than_fits(std::uint64_t draw) {
    const Bytes size = kLargest;
    Address both[2];
    for (Address& at : both) {
      const auto placed = pager_.allocate(size);
      ASSERT_TRUE(std::holds_alternative<Address>(placed));
      at = std::get<Address>(placed);
      fill_(at, size, ++seed_);
    }
    const std::uint64_t seed = seed_ - 1;
    if (draw % 2 == 0) pager_.planned().spill(both[draw / 2 % 2]);
    ASSERT_EQ(pager_.copy_storage(both[1], both[0], size), Pager::Copy::Done);
    for (const Address at : both) {
      ASSERT_TRUE(!real_ || PagerTest::holds(at, size, seed));
      pager_.free(at);
    }
    ++copied_;
  }
  // Makes a dropped storage again before it is needed, as a plan does.
  void replace(Address at) {
    const Storage storage = storages_.at(at);
    const auto placed = pager_.allocate(storage.size);
    ASSERT_TRUE(std::holds_alternative<Address>(placed));
    const Address from = std::get<Address>(placed);
    fill_(from, storage.size, storage.seed);
    pager_.planned().adopt(at, from);
    pager_.free(from);
  }

  Pager& pager_;
  Refill& refill_;
  const Refill::Fill fill_;
  const bool real_;
  std::map<Address, Storage> storages_;
  Bytes live_;
  std::uint64_t seed_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t copied_ = 0;
};

void run(Program& program, const Store& store, const Pager& pager, std::uint64_t operations) {
  std::mt19937_64 random(20261122);
  for (std::uint64_t i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
    program.step(random());
    if (i % 16 == 0) program.check_counts(store);
  }
  if (testing::Test::HasFatalFailure()) return;
  const PagerCounts moves = pager.counts();
  EXPECT_GT(program.dropped(), 0u);
  EXPECT_GT(program.copied(), 0u);
  EXPECT_GT(moves.recomputed, 0u);
  EXPECT_GT(moves.evicted_on_demand, 0u) << "there was always room: the test tests too little";
  EXPECT_GT(moves.rewrites_avoided, Bytes{});
  EXPECT_EQ(moves.spill_failure, "");
  program.end();
  const StoreCounts pages = store.counts();
  EXPECT_EQ(pages.live, Bytes{});
  EXPECT_EQ(pages.present, Bytes{});
  EXPECT_EQ(pages.vacated, Bytes{});
  EXPECT_EQ(pages.resident, pages.idle);
  EXPECT_EQ(pager.counts().dropped_now, Bytes{});
  EXPECT_EQ(pager.counts().spilled_now, Bytes{});
}

TEST(PagerRandom, AMillionOperationsWithNothingBehind) {
  NoPages pages;
  FixedLimit limit(kLimit);
  auto store = Store::create(pages, limit);
  ASSERT_TRUE(store) << store.error().text();
  SpillFile::Options options;
  options.checksums = false;  // there are no bytes
  options.calls.write = [](int, const void*, std::size_t size, off_t) { return static_cast<ssize_t>(size); };
  options.calls.read = [](int, void*, std::size_t size, off_t) { return static_cast<ssize_t>(size); };
  auto file = SpillFile::open({std::filesystem::temp_directory_path().string(), 1_GiB}, options);
  ASSERT_TRUE(file) << file.error().text();
  const std::unique_ptr<Pager> made = Pager::create(**store, file->get(), {});
  Pager& pager = *made;
  const auto nothing = [](Address, Bytes, std::uint64_t) {};
  Refill refill(pager, nothing);
  pager.planned().set_recomputer(&refill);
  Program program(pager, refill, nothing, /*real=*/false);
  run(program, **store, pager, seeds(1'000'000));
  EXPECT_LE((*file)->counts().in_use, kLargest);  // the reserve
}

class PagerRandomTest : public PagerTest {};

TEST_F(PagerRandomTest, KeepsEveryBitOnTheSystem) {
  open(kLimit);
  Refill refill(*pager_, &PagerTest::write);
  pager_->planned().set_recomputer(&refill);
  Program program(*pager_, refill, &PagerTest::write, /*real=*/true);
  run(program, *store_, *pager_, seeds(8'000));
  EXPECT_LE(file_->counts().in_use, kLargest);  // the reserve
}

TEST_F(PagerRandomTest, KeepsEveryBitWithABackgroundThatFollowsOrders) {
  open(kLimit);
  auto* refill = new Refill(*pager_, &PagerTest::write);  // never deleted, because the background thread uses it
  pager_->planned().set_recomputer(refill);
  pager_->planned().follow_plan(true);
  run_background();
  Program program(*pager_, *refill, &PagerTest::write, /*real=*/true);
  run(program, *store_, *pager_, 4'000);
}

}  // namespace
}  // namespace ullage::store
