// SPDX-License-Identifier: Apache-2.0
// A million random operations, compared with a model that is simple enough to be trusted: a map of what is live.
#include "ullage/store/os_pages.h"
#include "ullage/store/store.h"

#include "seeds.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

namespace ullage::store {
namespace {

// Draws sizes as programs have them: many small ones, some of the same few shapes, a few odd and large ones.
Bytes draw_size(std::mt19937_64& random) {
  static constexpr std::uint64_t kShapes[] = {65536, 147456, 524288, 2097152, 4194304, 4518064};
  switch (random() % 20) {
    case 0:
      return Bytes{kShapes[random() % std::size(kShapes)]};
    case 1:
      return Bytes{65536 + random() % 3000000};
    case 2:
      return random() % 50 == 0 ? Bytes{1 + random() % 40000000} : Bytes{1 + random() % 65536};
    default:
      return Bytes{1 + random() % (random() % 8 == 0 ? 20000 : 300)};
  }
}

// As a card has them: pages of 2 MiB, which may also be held without an address. Every change is checked: a page is
// mapped where none is, and taken off where one is.
class PagesOfACard final : public Pages {
 public:
  enum class Driver { Works, FailsAtTimes };
  explicit PagesOfACard(Driver driver = Driver::Works) : driver_(driver) {}
  ~PagesOfACard() override { EXPECT_EQ(Bytes{mapped_.size() * kHugePage.count} + unmapped_, held_); }

  Bytes granularity() const override { return kHugePage; }
  Result<AddressRange> reserve(Bytes wanted) override { return AddressRange{Address{1ull << 40}, wanted}; }
  bool fill(Address at, Bytes length, PageKind kind) override {
    EXPECT_EQ(kind, PageKind::Huge);
    if (fails(97)) return false;
    put(at, length);
    held_ += length;
    return true;
  }
  bool move(Address from, Address to, Bytes length) override {
    take(from, length);
    put(to, length);
    return true;
  }
  void drop(Address at, Bytes length) override {
    take(at, length);
    held_ -= length;
  }
  bool protect(Address, Bytes, Access) override { return true; }
  bool holds_unmapped() const override { return true; }
  bool unmap(Address at, Bytes length) override {
    if (fails(1009)) return false;
    take(at, length);
    unmapped_ += length;
    return true;
  }
  bool remap(Address at, Bytes length) override {
    EXPECT_LE(length, unmapped_);
    if (fails(97)) return false;
    unmapped_ -= length;
    put(at, length);
    return true;
  }
  void drop_unmapped(Bytes length) override {
    EXPECT_LE(length, unmapped_);
    unmapped_ -= length, held_ -= length;
  }

 private:
  bool fails(std::uint64_t one_in) { return driver_ == Driver::FailsAtTimes && ++calls_ % one_in == 0; }
  void put(Address at, Bytes length) {
    for (Bytes done; done < length; done += kHugePage)
      EXPECT_TRUE(mapped_.insert((at + done).value).second) << "mapped twice";
  }
  void take(Address at, Bytes length) {
    for (Bytes done; done < length; done += kHugePage) EXPECT_EQ(mapped_.erase((at + done).value), 1u) << "not mapped";
  }

  const Driver driver_;
  std::uint64_t calls_ = 0;
  std::set<std::uint64_t> mapped_;
  Bytes unmapped_;
  Bytes held_;
};

// Whoever allocates from a card's store serves requests below Store::kLeastRange elsewhere.
Bytes draw_size_for_a_card(std::mt19937_64& random) {
  return random() % 4 == 0 ? Bytes{1 + random() % 20} * kHugePage.count : Bytes{65536 + random() % 9000000};
}

class Model {
 public:
  Model(Store& store, bool real) : store_(store), real_(real) {}

  void allocate(Bytes size, Bytes limit) {
    const auto placed = store_.allocate(size);
    if (const auto* refusal = std::get_if<Refusal>(&placed)) {
      ASSERT_EQ(refusal->live, live_);
      ASSERT_TRUE(refusal->needed > limit || refusal->reason == Refusal::Reason::Device) << "refused although it fits";
      return;
    }
    const Address at = std::get<Address>(placed);
    const auto next = blocks_.lower_bound(at);
    ASSERT_TRUE(next == blocks_.end() || at + size <= next->first) << "overlaps the block above";
    if (next != blocks_.begin()) {
      const auto before = std::prev(next);
      ASSERT_TRUE(before->first + before->second.size <= at) << "overlaps the block below";
    }
    live_ += size;
    blocks_.emplace(at, Block{size, ++stamp_});
    mark(at, size, stamp_);
  }

  void free(std::uint64_t draw) {
    auto it = blocks_.lower_bound(Address{(1ull << 40) + draw % (1ull << 30)});
    if (real_ || it == blocks_.end())
      it = blocks_.begin(), std::advance(it, static_cast<long>(draw % std::min<std::size_t>(blocks_.size(), 64)));
    if (it->second.vacated) {
      vacated_ -= store_.span(it->second.size);
      away_.erase(it->first);
    } else {
      ASSERT_TRUE(marked(it->first, it->second.size, it->second.stamp)) << "the block's bytes were changed by another";
    }
    ASSERT_EQ(store_.free(it->first), it->second.size);
    live_ -= it->second.size;
    blocks_.erase(it);
  }

  // Takes the pages of some range away; its address stays taken.
  void vacate(std::uint64_t draw) {
    auto it = blocks_.lower_bound(Address{blocks_.begin()->first.value + draw % (1ull << 28)});
    while (it != blocks_.end() && (it->second.size < Store::kLeastRange || it->second.vacated)) ++it;
    if (it == blocks_.end()) return;
    ASSERT_TRUE(marked(it->first, it->second.size, it->second.stamp)) << "the block's bytes were changed by another";
    draw % 16 == 0 ? store_.give_back(it->first) : store_.vacate(it->first);
    it->second.vacated = true;
    vacated_ += store_.span(it->second.size);
    away_.insert(it->first);
  }

  enum class After { Settle, GiveUp, Free };
  // Brings such a range back: stages pages, fills them, and settles them. Or gives up; or the storage is freed
  // meanwhile.
  void bring_back(After after, Bytes limit) {
    if (away_.empty()) return;
    const Address at = *away_.begin();
    Block& block = blocks_.at(at);
    const auto staged = store_.stage(at);
    if (const auto* refusal = std::get_if<Refusal>(&staged)) {
      ASSERT_TRUE(refusal->needed > limit || refusal->reason == Refusal::Reason::Device) << "refused although it fits";
      return;
    }
    if (after == After::Free) {
      ASSERT_EQ(store_.free(at), block.size);
      live_ -= block.size, vacated_ -= store_.span(block.size);
      blocks_.erase(at), away_.erase(at);
    }
    if (after != After::Settle) return store_.unstage(std::get<Address>(staged));
    mark(std::get<Address>(staged), block.size, block.stamp);
    ASSERT_TRUE(store_.settle(at, std::get<Address>(staged), Access::Read));
    ASSERT_TRUE(marked(at, block.size, block.stamp)) << "its bytes did not come along";
    ASSERT_TRUE(store_.protect(at, Access::ReadWrite));
    block.vacated = false;
    vacated_ -= store_.span(block.size);
    away_.erase(at);
  }

  // Makes the bytes again in another block, and hands its pages over.
  void hand_over(Bytes limit) {
    if (away_.empty()) return;
    const Address at = *away_.rbegin();
    Block& block = blocks_.at(at);
    const auto placed = store_.allocate(block.size);
    if (const auto* refusal = std::get_if<Refusal>(&placed)) {
      ASSERT_TRUE(refusal->needed > limit || refusal->reason == Refusal::Reason::Device) << "refused although it fits";
      return;
    }
    const Address from = std::get<Address>(placed);
    mark(from, block.size, block.stamp);
    ASSERT_TRUE(store_.hand_over(from, at));
    ASSERT_TRUE(marked(at, block.size, block.stamp)) << "its bytes did not come along";
    mark(at, block.size, block.stamp);
    ASSERT_EQ(store_.free(from), block.size);
    block.vacated = false;
    vacated_ -= store_.span(block.size);
    away_.erase(at);
  }

  void check(Bytes limit) const {
    const StoreCounts c = store_.counts();
    Bytes present = live_;
    for (const Address at : away_) present -= blocks_.at(at).size;
    ASSERT_EQ(c.present, present);
    ASSERT_EQ(c.live, live_);
    ASSERT_LE(c.resident, limit);
    ASSERT_EQ(c.vacated, vacated_);
    ASSERT_GE(c.resident + c.vacated, c.live + c.idle);
    ASSERT_EQ(c.allocations - c.frees, blocks_.size());
  }

  std::size_t count() const { return blocks_.size(); }

 private:
  struct Block {
    Bytes size;
    std::uint64_t stamp;
    bool vacated = false;
  };

  // Stamps the first and the last bytes. This reveals any overlap, and any page that is taken from a live block.
  void mark(Address at, Bytes size, std::uint64_t stamp) const {
    if (!real_) return;
    const std::size_t n = std::min<std::size_t>(8, size.count);
    std::memcpy(reinterpret_cast<void*>(at.value + size.count - n), &stamp, n);
    std::memcpy(reinterpret_cast<void*>(at.value), &stamp, n);
  }
  bool marked(Address at, Bytes size, std::uint64_t stamp) const {
    if (!real_) return true;
    const std::size_t n = std::min<std::size_t>(8, size.count);
    const bool first = std::memcmp(reinterpret_cast<void*>(at.value), &stamp, n) == 0;
    return first &&
           (size.count < 16 || std::memcmp(reinterpret_cast<void*>(at.value + size.count - n), &stamp, n) == 0);
  }

  Store& store_;
  const bool real_;
  std::map<Address, Block> blocks_;
  std::set<Address> away_;
  Bytes live_{};
  Bytes vacated_{};
  std::uint64_t stamp_ = 0;
};

void run(Pages& pages, bool real, std::uint64_t operations, std::size_t most_pieces) {
  const bool on_card = pages.holds_unmapped();
  const Bytes limit_bytes = 192_MiB;
  FixedLimit limit(limit_bytes);
  auto made = Store::create(pages, limit, {.address_space = Bytes{1ull << 40}, .most_pieces = most_pieces});
  ASSERT_TRUE(made) << made.error().text();
  Model model(**made, real);
  std::mt19937_64 random(20261121);
  for (std::uint64_t i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
    // Live bytes grow and shrink in waves, so that the limit is reached and idle pages of every kind collect.
    const bool growing = (i / 20000) % 2 == 0;
    if (model.count() == 0 || random() % 100 < (growing ? 60u : 42u)) {
      model.allocate(on_card ? draw_size_for_a_card(random) : draw_size(random), limit_bytes);
    } else {
      model.free(random());
    }
    if (random() % 100 == 0 && model.count() > 0) model.vacate(random());
    if (random() % 150 == 0) model.hand_over(limit_bytes);
    if (random() % 60 == 0) {
      constexpr Model::After kOther[] = {Model::After::GiveUp, Model::After::Free};
      const std::uint64_t draw = random() % 16;
      model.bring_back(draw < 2 ? kOther[draw] : Model::After::Settle, limit_bytes);
    }
    if (i % 64 == 0) model.check(limit_bytes);
  }
  while (model.count() > 0 && !testing::Test::HasFatalFailure()) model.free(0);
  const StoreCounts c = (*made)->counts();
  EXPECT_EQ(c.live, 0_B);
  EXPECT_EQ(c.present, 0_B);
  EXPECT_EQ(c.vacated, 0_B);
  EXPECT_EQ(c.slabs, 0_B);
  EXPECT_EQ(c.resident, c.idle);
  EXPECT_GT(c.refused, 0u) << "the limit was never met: the test tests too little";
  EXPECT_GT(c.moved, 0_B);
}

TEST(StoreRandom, AMillionOperationsWithNothingBehind) {
  NoPages pages;
  run(pages, false, seeds(1'000'000), 16384);
}

TEST(StoreRandom, AHundredThousandOperationsOnACard) {
  PagesOfACard pages;
  run(pages, false, 100'000, 16384);
}

// After an unmapping has failed, pages are given back and taken anew.
TEST(StoreRandom, ACardWhoseDriverFailsAtTimes) {
  PagesOfACard pages(PagesOfACard::Driver::FailsAtTimes);
  run(pages, false, 100'000, 16384);
}

TEST(StoreRandom, AMillionOperationsOnTheSystem) {
  OsPages pages;
  run(pages, true, seeds(1'000'000), 16384);
}

TEST(StoreRandom, WithHardlyAnyMappingsAllowed) {
  OsPages pages;
  run(pages, true, seeds(100'000), 128);
}

}  // namespace
}  // namespace ullage::store
