// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/pool.h"

#include "ullage/store/store.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace ullage::sim {
namespace {

class Made {
 public:
  StorageId from_before(Bytes bytes) {
    const StorageId id = add(bytes);
    trace.storages.back().from_before = true;
    return id;
  }
  StorageId make(Bytes bytes) {
    const StorageId id = add(bytes);
    trace.events.push_back({trace::event::Allocation{id}, {}, {}});
    return id;
  }
  void free(StorageId id) { trace.events.push_back({trace::event::Free{id}, {}, {}}); }

  trace::Trace trace;

 private:
  StorageId add(Bytes bytes) {
    trace::Storage storage;
    storage.bytes = bytes;
    trace.storages.push_back(storage);
    return StorageId{trace.storages.size() - 1};
  }
};

TEST(Pool, PlacesASmallStorageInASlab) {
  Made made;
  made.make(100_B);
  EXPECT_EQ(run_pool(made.trace).live, 100_B);
  EXPECT_EQ(run_pool(made.trace).resident, 256_KiB);
}

TEST(Pool, HandsPagesOn) {
  Made made;
  const StorageId first = made.make(3_MiB);
  made.free(first);
  made.make(3_MiB);
  EXPECT_EQ(run_pool(made.trace).live, 3_MiB);
  EXPECT_EQ(run_pool(made.trace).resident, 3_MiB);
}

TEST(Pool, BeginsWithWhatIsFromBefore) {
  Made made;
  const StorageId before = made.from_before(1_MiB);
  made.make(2_MiB);
  made.free(before);
  EXPECT_EQ(run_pool(made.trace).live, 3_MiB);
  EXPECT_EQ(run_pool(made.trace).resident, 3_MiB);
}

TEST(Pool, IsTheStoreItself) {
  std::mt19937_64 random(5);
  Made made;
  store::NoPages pages;
  store::FixedLimit limit(Bytes{1ull << 60});
  const std::unique_ptr<store::Store> real = store::Store::create(pages, limit).value();
  std::map<std::uint64_t, Address> live;
  for (int i = 0; i < 5000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      auto one = live.begin();
      std::advance(one, long(random() % live.size()));
      made.free(StorageId{one->first});
      real->free(one->second);
      live.erase(one);
    } else {
      const Bytes bytes{1 + (random() >> (38 + random() % 26))};
      live[made.make(bytes).value] = std::get<Address>(real->allocate(bytes));
    }
  }
  EXPECT_EQ(run_pool(made.trace).live, real->counts().live_peak);
  EXPECT_EQ(run_pool(made.trace).resident, real->counts().resident_peak);
}

TEST(Pool, CountsWhatNoStoreCanPlace) {
  Made made;
  made.make(1_MiB);
  const StorageId large = made.make(Bytes{1ull << 61});
  made.make(Bytes{UINT64_MAX});
  made.free(large);
  made.make(Bytes{UINT64_MAX - 7});
  EXPECT_EQ(run_pool(made.trace).live, Bytes{(1ull << 62)} + 1_MiB);
  EXPECT_GE(run_pool(made.trace).resident, run_pool(made.trace).live);
}

}  // namespace
}  // namespace ullage::sim
