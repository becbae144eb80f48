// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/side_by_side.h"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace ullage::cli {
namespace {

TEST(SideBySide, TwoPiecesGoAtOnce) {
  std::barrier both(2);  // would wait for ever if the second piece began after the first
  side_by_side({[&] { both.arrive_and_wait(); }, [&] { both.arrive_and_wait(); }}, 2);
}

TEST(SideBySide, OneAtATimeKeepsTheOrder) {
  std::vector<int> order;
  side_by_side({[&] { order.push_back(1); }, [&] { order.push_back(2); }, [&] { order.push_back(3); }}, 1);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(SideBySide, NoMoreThreadsThanAskedFor) {
  std::mutex lock;
  std::set<std::thread::id> threads;
  const std::function<void()> note = [&] {
    const std::lock_guard held(lock);
    threads.insert(std::this_thread::get_id());
  };
  side_by_side(std::vector<std::function<void()>>(50, note), 3);
  EXPECT_LE(threads.size(), 3u);
}

TEST(SideBySide, APieceThatThrowsEndsNoOther) {
  int done = 0;
  EXPECT_THROW(side_by_side({[] { throw std::runtime_error("x"); }, [&] { ++done; }, [&] { ++done; }}, 1),
               std::runtime_error);
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace ullage::cli
