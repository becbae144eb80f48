// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recording with everything that src/ullage/trace derives from it. The constructor checks what must hold for each.

#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/lifetimes.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/recording/reconstruct.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace ullage::trace {

struct History {
  explicit History(const Recording& file, std::size_t device = 0)
      : recorded(file.devices.at(device)),
        trace(reconstruct(recorded, file)),
        meanings(trace::meanings(file.stacks)),
        level(levels(trace)),
        category(categories(trace, meanings)),
        steps(find_steps(trace, meanings)) {
    check();
  }

  Moment at(At when) const { return *find(trace, level, when); }
  std::vector<Owner> owners(At when) const { return owners_at(trace, at(when), meanings); }
  std::map<Category, Bytes> bytes_by_category(At when) const {
    std::map<Category, Bytes> bytes;
    for (const Owner& one : owners(when)) bytes[one.category] += one.bytes;
    return bytes;
  }
  std::vector<Growth> growth() const { return trace::growth(trace, steps, meanings); }

  const DeviceRecording recorded;
  const Trace trace;
  const std::vector<StackMeaning> meanings;
  const Levels level;
  const std::vector<Category> category;
  const Steps steps;

 private:
  // Computes live bytes from the storages alone, anew for each event, and compares them with the levels.
  void check() const {
    ASSERT_EQ(trace.events.size(), recorded.events.size());
    ASSERT_EQ(level.live.size(), trace.events.size());
    ASSERT_EQ(category.size(), trace.storages.size());
    Bytes before;
    for (const Storage& one : trace.storages) {
      ASSERT_LE(one.born, one.tensor_died);
      ASSERT_LE(one.tensor_died, one.died);
      ASSERT_LE(one.died, trace.end());
      if (one.from_before) before += one.bytes;
    }
    EXPECT_EQ(before, trace.live_before);
    for (const At when : {At::Peak, At::OutOfMemory, At::End}) {
      const auto moment = find(trace, level, when);
      if (!moment) continue;
      Bytes sum, storages;
      std::uint64_t count = 0;
      for (const Owner& one : owners_at(trace, *moment, meanings)) {
        sum += one.bytes;
        count += one.storages;
        EXPECT_FALSE(one.name.empty());
      }
      std::uint64_t live = 0;
      for (const Storage& one : trace.storages) {
        const bool is_live = moment->event ? one.born <= *moment->event && *moment->event < one.died : one.from_before;
        if (!is_live) continue;
        ++live;
        storages += one.bytes;
      }
      EXPECT_EQ(sum, moment->live);
      EXPECT_EQ(storages, moment->live);
      EXPECT_EQ(count, live);
    }
    for (std::size_t i = 1; i < steps.begins.size(); ++i) EXPECT_LT(steps.begins[i - 1], steps.begins[i]);
    EXPECT_EQ(phases(trace, meanings).size(), trace.events.size());
  }
};

// Returns the requested bytes of the blocks that are not cached at the end.
inline Bytes requested_at_end(const DeviceRecording& recorded) {
  Bytes sum;
  for (const Segment& segment : recorded.segments) {
    for (const Block& block : segment.blocks) {
      if (block.state != Block::State::Inactive) sum += block.requested;
    }
  }
  return sum;
}

}  // namespace ullage::trace
