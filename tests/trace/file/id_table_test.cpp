// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/id_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

namespace ullage::trace {
namespace {

TEST(IdTable, DoesWhatAMapDoes) {
  IdTable<std::uint64_t> table;
  std::map<std::uint64_t, std::uint64_t> map;
  std::mt19937_64 random(1);
  for (int i = 0; i < 300'000; ++i) {
    // Few keys, so that they collide again and again; now and then the largest key.
    const std::uint64_t key = random() % 64 == 0 ? UINT64_MAX - 1 : random() % (1 + i / 300);
    if (random() % 2 == 0) {
      table[key] = map[key] = random();
    } else {
      table.erase(key);
      map.erase(key);
    }
    const std::uint64_t asked = random() % (1 + i / 300);
    const std::uint64_t* found = table.find(asked);
    ASSERT_EQ(found != nullptr, map.contains(asked));
    if (found != nullptr) {
      ASSERT_EQ(*found, map[asked]);
    }
    ASSERT_EQ(table.size(), map.size());
  }
  std::map<std::uint64_t, std::uint64_t> all;
  table.for_each([&](std::uint64_t key, std::uint64_t value) { all[key] = value; });
  EXPECT_EQ(all, map);
}

TEST(IdTable, GrowsWithThoseThatAreThereAtOnce) {
  IdTable<std::uint64_t> table;
  for (std::uint64_t id = 0; id < 100'000; ++id) {
    table[id] = id;
    if (id >= 20) table.erase(id - 20);
  }
  EXPECT_EQ(table.size(), 20u);
  EXPECT_LE(table.held(), 64u * 16);
}

}  // namespace
}  // namespace ullage::trace
