// SPDX-License-Identifier: Apache-2.0
// Tests what every model of an allocator must do, with any policy. The models are PyTorch's allocator under several
// settings, and our own pool without memory behind it. To test a new model, add a type to the list.
#include "ullage/sim/caching.h"
#include "ullage/store/store.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ullage::sim {
namespace {

struct Figures {
  Bytes requested;
  Bytes reserved;
  friend bool operator==(const Figures&, const Figures&) = default;
};

// A model of PyTorch's allocator that may reserve `limit` bytes.
class CachingModel {
 public:
  CachingModel(const CachingSettings& settings, Bytes device) : device_(device), allocator_(settings, device_) {}
  static Bytes alignment(Bytes) { return 512_B; }

  // Returns nothing if there is a shortage, after checking what the shortage says.
  std::optional<Address> allocate(Bytes size) {
    const auto outcome = allocator_.allocate(size, StreamId{0});
    if (const auto* shortage = std::get_if<Shortage>(&outcome)) {
      EXPECT_EQ(shortage->requested, size);
      EXPECT_EQ(shortage->reserved, allocator_.stats().reserved);
      return std::nullopt;
    }
    const Allocation& allocation = std::get<Allocation>(outcome);
    blocks_.emplace(allocation.address.value, std::pair{allocation.block, size});
    return allocation.address;
  }
  void free(Address at) {
    const auto node = blocks_.extract(at.value);
    allocator_.free(node.mapped().first);
  }
  Figures figures() const {
    Bytes requested;
    for (const auto& [at, block] : blocks_) requested += block.second;
    return {requested, allocator_.stats().reserved};
  }
  Bytes live() const { return allocator_.stats().allocated; }

 private:
  SimulatedDevice device_;
  CachingAllocator allocator_;
  std::unordered_map<std::uint64_t, std::pair<BlockId, Bytes>> blocks_;
};

CachingSettings settings_with(void (*change)(CachingSettings&)) {
  CachingSettings settings;
  change(settings);
  return settings;
}

struct Plain : CachingModel {
  explicit Plain(Bytes limit) : CachingModel({}, limit) {}
};
struct Torch211 : CachingModel {
  explicit Torch211(Bytes limit)
      : CachingModel(settings_with([](CachingSettings& s) { s.ties = Ties::LowestAddress; }), limit) {}
};
struct Expandable : CachingModel {
  explicit Expandable(Bytes limit)
      : CachingModel(settings_with([](CachingSettings& s) { s.expandable_segments = true; }), limit) {}
};
struct MaxSplit : CachingModel {
  explicit MaxSplit(Bytes limit)
      : CachingModel(settings_with([](CachingSettings& s) { s.max_split = 24_MiB; }), limit) {}
};
struct Divided : CachingModel {
  explicit Divided(Bytes limit)
      : CachingModel(settings_with([](CachingSettings& s) { s.roundup_power2_divisions.fill(8); }), limit) {}
};
struct Fraction : CachingModel {
  explicit Fraction(Bytes limit)
      : CachingModel(settings_with([](CachingSettings& s) {
                       s.memory_fraction = 0.25;
                       s.garbage_collection_threshold = 0.6;
                     }),
                     limit * 4) {}
};

// Ullage's pool.
class OwnPool {
 public:
  explicit OwnPool(Bytes limit) : limit_(limit) {
    auto created = store::Store::create(pages_, limit_);
    EXPECT_TRUE(created.ok());
    store_ = std::move(*created);
  }
  static Bytes alignment(Bytes size) { return size < store::Store::kLeastRange ? 64_B : 4_KiB; }

  std::optional<Address> allocate(Bytes size) {
    const auto outcome = store_->allocate(size);
    if (const auto* refusal = std::get_if<store::Refusal>(&outcome)) {
      EXPECT_EQ(refusal->requested, size);
      EXPECT_EQ(refusal->live, store_->counts().live);
      return std::nullopt;
    }
    return std::get<Address>(outcome);
  }
  void free(Address at) { store_->free(at); }
  Figures figures() const { return {store_->counts().live, store_->counts().resident}; }
  Bytes live() const { return store_->counts().live; }

 private:
  store::NoPages pages_;
  store::FixedLimit limit_;
  std::unique_ptr<store::Store> store_;
};

constexpr Bytes kLimit = 256_MiB;

// A model and a map of what is live, which are compared after each call.
template <class Model>
class Checked {
 public:
  explicit Checked(Bytes limit) : limit_(limit), model_(limit) {}

  std::optional<Address> allocate(Bytes size) {
    const Figures before = model_.figures();
    const std::optional<Address> at = model_.allocate(size);
    if (at) {
      EXPECT_EQ(at->value % Model::alignment(size).count, 0u);
      const auto next = live_.lower_bound(*at);
      EXPECT_TRUE(next == live_.end() || *at + size <= next->first) << "overlaps the block above";
      EXPECT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second <= *at)
          << "overlaps the block below";
      live_.emplace(*at, size);
      sum_ += size;
    } else {
      EXPECT_EQ(model_.figures().requested, before.requested) << "a shortage changed what is live";
      EXPECT_LE(model_.figures().reserved, before.reserved) << "a shortage kept something";
    }
    check();
    return at;
  }
  void free(Address at) {
    model_.free(at);
    sum_ -= live_.at(at);
    live_.erase(at);
    check();
  }
  void free_any(std::uint64_t draw) {
    auto it = live_.begin();
    std::advance(it, static_cast<long>(draw % live_.size()));
    free(it->first);
  }
  void check() const {
    EXPECT_EQ(model_.figures().requested, sum_);
    EXPECT_GE(model_.live(), sum_);
    EXPECT_GE(model_.figures().reserved, sum_);
    EXPECT_LE(model_.figures().reserved, limit_);
  }
  const std::map<Address, Bytes>& live() const { return live_; }
  Figures figures() const { return model_.figures(); }

 private:
  Bytes limit_;
  Model model_;
  std::map<Address, Bytes> live_;
  Bytes sum_;
};

Bytes draw_size(std::mt19937_64& random) {
  static constexpr std::uint64_t kSizes[] = {1, 512, 65536, 1 << 20, (1 << 20) + 1, 4 << 20, 10 << 20, (10 << 20) - 1};
  if (random() % 3 == 0) return Bytes{kSizes[random() % std::size(kSizes)]};
  return Bytes{1 + (random() >> (40 + random() % 24))};
}

// Makes random requests, more than fit. Returns for each request where it was placed.
template <class Model>
std::vector<std::optional<Address>> random_run(Checked<Model>& checked, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::optional<Address>> placed;
  for (int i = 0; i < 3000; ++i) {
    if (!checked.live().empty() && random() % 5 < 2) {
      checked.free_any(random());
    } else {
      placed.push_back(checked.allocate(draw_size(random)));
    }
  }
  return placed;
}

template <class Model>
class AllocatorModel : public testing::Test {};

using Models = testing::Types<Plain, Torch211, Expandable, MaxSplit, Divided, Fraction, OwnPool>;
TYPED_TEST_SUITE(AllocatorModel, Models);

TYPED_TEST(AllocatorModel, KeepsItsAccountsAndNeverOverlaps) {
  Checked<TypeParam> checked(kLimit);
  const auto placed = random_run(checked, 1);
  EXPECT_GT(std::count(placed.begin(), placed.end(), std::nullopt), 0) << "no shortage was met";
}

TYPED_TEST(AllocatorModel, DoesTheSameTwice) {
  Checked<TypeParam> first(kLimit);
  Checked<TypeParam> second(kLimit);
  EXPECT_EQ(random_run(first, 2), random_run(second, 2));
  EXPECT_EQ(first.figures(), second.figures());
}

TYPED_TEST(AllocatorModel, JoinsWhatIsFree) {
  Checked<TypeParam> checked(kLimit);
  random_run(checked, 3);
  std::mt19937_64 random(4);
  while (!checked.live().empty()) checked.free_any(random());
  EXPECT_EQ(checked.figures().requested, 0_B);
  EXPECT_TRUE(checked.allocate(kLimit - 16_MiB)) << "nothing is live, and most of the limit cannot be had";
}

TYPED_TEST(AllocatorModel, ServesARequestTheMomentTheLimitAllows) {
  // With 30 MiB live, a request for 40 MiB is refused up to some limit and served at every larger one.
  bool served = false;
  for (Bytes limit = 40_MiB; limit <= 128_MiB; limit += 4_MiB) {
    Checked<TypeParam> checked(limit);
    ASSERT_TRUE(checked.allocate(30_MiB));
    const bool now = checked.allocate(40_MiB).has_value();
    EXPECT_TRUE(now || !served) << "served with less, refused with " << limit.count;
    served = now;
    if (!now) {
      EXPECT_TRUE(checked.allocate(1_MiB + 1_B) || limit < 60_MiB) << "little after a shortage";
    }
  }
  EXPECT_TRUE(served);
}

TYPED_TEST(AllocatorModel, RefusesWhatNoLimitAllows) {
  Checked<TypeParam> checked(kLimit);
  ASSERT_TRUE(checked.allocate(1_MiB));
  for (const Bytes size : {kLimit + 1_B, Bytes{1ull << 50}, Bytes{(1ull << 60) - 1}}) {
    EXPECT_FALSE(checked.allocate(size)) << size.count;
  }
  EXPECT_TRUE(checked.allocate(1_MiB));
}

TYPED_TEST(AllocatorModel, GivesTheSameBlockAgain) {
  Checked<TypeParam> checked(kLimit);
  const auto first = checked.allocate(5_MiB);
  ASSERT_TRUE(first);
  checked.free(*first);
  EXPECT_EQ(checked.allocate(5_MiB), first);
}

}  // namespace
}  // namespace ullage::sim
