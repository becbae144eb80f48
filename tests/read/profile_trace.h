// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds small profiler traces event by event.

#include "ullage/read/profile/profile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace ullage::read {

class ProfileText {
 public:
  nlohmann::json head = {{"schemaVersion", 1},
                         {"deviceProperties", {{{"id", 0}, {"name", "Some GPU"}, {"totalGlobalMem", 8589934592u}}}}};

  // Adds a memory event of CUDA device 0. Each total is written unless it is negative, the address unless it is 0.
  ProfileText& memory(double at, long long bytes, unsigned long long address = 0, long long allocated = -1,
                      long long reserved = -1) {
    nlohmann::json event = {{"ph", "i"}, {"s", "t"}, {"name", "[memory]"}, {"pid", 1}, {"tid", 7}, {"ts", at}};
    event["args"] = {{"Device Type", 1}, {"Device Id", 0}, {"Bytes", bytes}};
    if (address) event["args"]["Addr"] = address;
    if (allocated >= 0) event["args"]["Total Allocated"] = allocated;
    if (reserved >= 0) event["args"]["Total Reserved"] = reserved;
    events.push_back(event);
    return *this;
  }

  ProfileText& span(const std::string& category, const std::string& name, double at, double duration, int thread = 7) {
    events.push_back(
        {{"ph", "X"}, {"cat", category}, {"name", name}, {"pid", 1}, {"tid", thread}, {"ts", at}, {"dur", duration}});
    return *this;
  }

  std::string text() const {
    nlohmann::json all = head;
    all["traceEvents"] = events;
    return all.dump();
  }

  trace::Profile read() const {
    auto profile = read_profile(text(), "x.json");
    EXPECT_TRUE(profile) << profile.error().text();
    return profile ? std::move(*profile) : trace::Profile{};
  }

  nlohmann::json events = nlohmann::json::array();
};

}  // namespace ullage::read
