// SPDX-License-Identifier: Apache-2.0
#include "dcgan/picture_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

namespace ullage::dcgan {
namespace {

using Batch = std::vector<int>;  // the numbers of its pictures

// A picture's path is its number, and its one byte holds that number.
class PictureFeedTest : public ::testing::Test {
 protected:
  std::unique_ptr<PictureFeed> feed(int count, DataPlace start = {}, bool skip_bad = false, std::uint64_t ahead = 4) {
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i) paths.push_back(std::to_string(i));
    const auto load = [this](const std::string& path) -> Result<std::vector<std::uint8_t>> {
      ++loaded_;
      const int number = std::stoi(path);
      if (number == throws_) throw std::runtime_error("thrown by the loader");
      if (bad_.contains(number)) return Error{Error::Kind::BadFile, "is bad", path};
      return std::vector<std::uint8_t>{static_cast<std::uint8_t>(number)};
    };
    return std::make_unique<PictureFeed>(paths, load, PictureFeed::Settings{7, Bytes{1}, Bytes{ahead}, skip_bad},
                                         start);
  }
  static Batch take(PictureFeed& from, std::size_t most) {
    Batch batch;
    const auto taken = from.take(most, [&](std::size_t k, std::span<const std::uint8_t> pixels) {
      EXPECT_EQ(k, batch.size());
      batch.push_back(pixels[0]);
    });
    EXPECT_TRUE(taken) << taken.error().text();
    EXPECT_EQ(*taken, batch.size());
    return batch;
  }
  // Returns the order of an epoch, without the bad pictures.
  Batch good_order(std::uint64_t epoch, std::uint32_t count) const {
    Batch list;
    for (const std::uint32_t i : epoch_order(7, epoch, count)) {
      if (!bad_.contains(static_cast<int>(i))) list.push_back(static_cast<int>(i));
    }
    return list;
  }

  std::set<int> bad_;
  int throws_ = -1;
  std::atomic<int> loaded_{0};
};

TEST(EpochOrder, IsAPermutationOfItsOwnForEverySeedAndEpoch) {
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      auto order = epoch_order(seed, epoch, 100);
      EXPECT_EQ(order, epoch_order(seed, epoch, 100));
      seen.insert(order);
      std::sort(order.begin(), order.end());
      for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(order[i], i);
    }
  }
  EXPECT_EQ(seen.size(), 25u);
}

TEST(EpochOrder, PutsEveryPictureEverywhereEquallyOften) {
  constexpr std::uint32_t kCount = 5;
  constexpr int kEpochs = 20000;
  std::vector<int> at(kCount * kCount);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = epoch_order(3, static_cast<std::uint64_t>(epoch), kCount);
    for (std::uint32_t place = 0; place < kCount; ++place) ++at[place * kCount + order[place]];
  }
  for (const int times : at) EXPECT_NEAR(times, kEpochs / kCount, 5 * 57);  // five standard deviations
}

// If this order changed, a run resumed from an old checkpoint would see other pictures.
TEST(EpochOrder, IsAsItWas) {
  EXPECT_EQ(epoch_order(1, 0, 8), (std::vector<std::uint32_t>{0, 3, 4, 7, 5, 6, 1, 2}));
  EXPECT_EQ(epoch_order(1, 1, 8), (std::vector<std::uint32_t>{5, 7, 4, 3, 6, 0, 2, 1}));
}

TEST_F(PictureFeedTest, GivesEpochsInOrderWithAShortLastBatch) {
  const auto pictures = feed(10);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const Batch order = good_order(epoch, 10);
    EXPECT_EQ(pictures->place(), (DataPlace{epoch, 0}));
    EXPECT_EQ(take(*pictures, 4), Batch(order.begin(), order.begin() + 4));
    EXPECT_EQ(pictures->place(), (DataPlace{epoch, 4}));
    EXPECT_EQ(pictures->left_in_epoch(), 6u);
    EXPECT_EQ(take(*pictures, 4), Batch(order.begin() + 4, order.begin() + 8));
    EXPECT_EQ(take(*pictures, 4), Batch(order.begin() + 8, order.end()));
  }
}

TEST_F(PictureFeedTest, GoesOnFromAPlace) {
  bad_ = {2, 5};
  const auto whole = feed(10, {}, true);
  for (int i = 0; i < 20; ++i) {
    const DataPlace place = whole->place();
    const auto from_there = feed(10, place, true);
    const Batch expected = take(*whole, 3);
    EXPECT_EQ(take(*from_there, 3), expected) << place.epoch << ":" << place.index;
    EXPECT_EQ(from_there->place(), whole->place());
  }
}

TEST_F(PictureFeedTest, FillsThePlaceOfABadPictureWithThoseThatFollow) {
  bad_ = {0, 1, 2};
  const auto pictures = feed(10, {}, true);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const Batch order = good_order(epoch, 10);
    Batch seen;
    while (pictures->place().epoch == epoch) {
      const Batch batch = take(*pictures, 4);
      seen.insert(seen.end(), batch.begin(), batch.end());
      EXPECT_TRUE(batch.size() == 4 || pictures->place().epoch == epoch + 1);
    }
    EXPECT_EQ(seen, order);
  }
  EXPECT_EQ(pictures->skipped().size(), 3u) << "each once, not once an epoch";
  EXPECT_EQ(pictures->skipped().front().why.substr(1), ": is bad");
}

TEST_F(PictureFeedTest, EndsAtTheFirstBadPictureUnlessToldToSkip) {
  bad_ = {4};
  const auto pictures = feed(10);
  const Batch order = good_order(0, 10);
  const auto full = epoch_order(7, 0, 10);
  const auto before = static_cast<std::size_t>(std::find(full.begin(), full.end(), 4u) - full.begin());
  EXPECT_EQ(take(*pictures, before), Batch(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(before)));
  const auto failed = pictures->take(1, [](std::size_t, std::span<const std::uint8_t>) { FAIL(); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "4: is bad");
}

TEST_F(PictureFeedTest, SaysWhenAWholeEpochIsBad) {
  bad_ = {0, 1, 2};
  for (const DataPlace start : {DataPlace{0, 0}, DataPlace{0, 2}}) {
    const auto pictures = feed(3, start, true);
    auto taken = pictures->take(2, [](std::size_t, std::span<const std::uint8_t>) { FAIL(); });
    if (taken) taken = pictures->take(2, [](std::size_t, std::span<const std::uint8_t>) { FAIL(); });
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().text(), "none of the 3 pictures can be read");
  }
}

TEST_F(PictureFeedTest, CarriesExceptionsToTheOneWhoTakes) {
  throws_ = static_cast<int>(epoch_order(7, 0, 10)[2]);
  const auto pictures = feed(10);
  EXPECT_EQ(take(*pictures, 2).size(), 2u);
  EXPECT_THROW((void)pictures->take(1, [](std::size_t, std::span<const std::uint8_t>) {}), std::runtime_error);
}

TEST_F(PictureFeedTest, StaysAheadByNoMoreThanItsBytes) {
  const auto pictures = feed(200, {}, false, 5);
  const auto loaded_at_rest = [this] {
    int before = -1;
    while (before != loaded_) {
      before = loaded_;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return before;
  };
  EXPECT_EQ(loaded_at_rest(), 6) << "five in the ring and one in the hand";
  take(*pictures, 3);
  EXPECT_EQ(loaded_at_rest(), 9);
}

TEST_F(PictureFeedTest, HoldsOnePictureWhereTheBytesAreFewer) {
  const auto pictures = feed(10, {}, false, 0);
  EXPECT_EQ(take(*pictures, 10), good_order(0, 10));
}

}  // namespace
}  // namespace ullage::dcgan
