// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is compared: settings of the allocator on a device of some size, with a kind of program that uses it.

#include "exchange.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::oracle {

// The settings as numbers, because sizes at their borders are asked for on purpose. MiB where nothing else is said.
struct Settings {
  std::optional<std::uint64_t> max_split = {};
  std::optional<std::uint64_t> max_non_split_rounding = {};
  std::optional<std::uint64_t> large_segment = {};
  std::vector<std::uint64_t> roundup = {};             // divisions: one number, or several for intervals
  std::uint64_t first_interval = 256;                  // of several: the interval of the first number
  std::uint64_t interval_factor = 2;                   // and how far the next interval is; above 2 leaves intervals out
  std::optional<std::uint64_t> collect_percent = {};   // garbage_collection_threshold, in hundredths
  std::optional<std::uint64_t> fraction_percent = {};  // per_process_memory_fraction, in hundredths
  bool expandable = false;
  bool large_segment_last = false;  // of the text; torch must not care

  std::string text() const;  // for PYTORCH_ALLOC_CONF
};

struct Case {
  std::string name;
  Settings settings;
  std::uint64_t fraction_percent = 100;  // of the device's memory; set by a call unless the settings have it
  std::uint64_t device = 1u << 20;       // MiB
  std::uint64_t event_queries = 0;
  bool first_fit = false;
  // The program.
  std::uint64_t live = 40'000;  // MiB that it holds about
  std::uint64_t streams = 1;
  std::uint64_t record_share = 0;    // operations of ten thousand that use a block on another stream
  std::uint64_t empty_share = 0;     // that empty the cache
  std::uint64_t hopeless_share = 0;  // that ask for more than any device has
  bool borders_only = false;         // asks for sizes at borders alone
  std::uint64_t seed = 0;
  std::uint64_t operations = 0;
};

// The settings that a person may meet, each alone, and the mixtures that have gone wrong before. The caller sets seed,
// operations and first_fit.
std::vector<Case> named_cases();
// Settings and program drawn by `seed`, which becomes the seed of the operations too.
Case random_case(std::uint64_t seed);

CaseHeader header_of(const Case& one);

// Sizes at which a rule of the allocator may change its mind under these settings, with their neighbours.
std::vector<std::uint64_t> border_sizes(const Settings& settings);

// Half of the sizes log-uniform from 1 B to 1 GiB, a third from 64 repeated ones, the rest at borders.
std::vector<Operation> operations_of(const Case& one);

}  // namespace ullage::oracle
