// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cases on which our model and torch's allocator are compared: allocator settings, a device size, and the kind of
// program that uses it.

#include "exchange.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::oracle {

// The settings as numbers, because programs ask for sizes at their borders on purpose. In MiB unless stated otherwise.
struct Settings {
  std::optional<std::uint64_t> max_split = {};
  std::optional<std::uint64_t> max_non_split_rounding = {};
  std::optional<std::uint64_t> large_segment = {};
  std::vector<std::uint64_t> roundup = {};             // divisions: one number, or one for each interval
  std::uint64_t first_interval = 256;                  // the interval of the first of several numbers
  std::uint64_t interval_factor = 2;                   // from one interval to the next; above 2 leaves intervals out
  std::optional<std::uint64_t> collect_percent = {};   // garbage_collection_threshold, in hundredths
  std::optional<std::uint64_t> fraction_percent = {};  // per_process_memory_fraction, in hundredths
  bool expandable = false;
  bool large_segment_last = false;  // writes large_segment last in text(); the order must not matter to torch

  std::string text() const;  // for PYTORCH_ALLOC_CONF
};

struct Case {
  std::string name;
  Settings settings;
  std::uint64_t fraction_percent = 100;  // of the device's memory; set by a call unless `settings` sets it
  std::uint64_t device = 1u << 20;       // MiB
  std::uint64_t event_queries = 0;
  bool first_fit = false;
  // The program. A share is the number of such operations in ten thousand.
  std::uint64_t live = 40'000;  // MiB that the program holds, roughly
  std::uint64_t streams = 1;
  std::uint64_t record_share = 0;    // use a block on another stream
  std::uint64_t empty_share = 0;     // empty the cache
  std::uint64_t hopeless_share = 0;  // ask for more than any device has
  bool borders_only = false;         // every request is one of border_sizes()
  std::uint64_t seed = 0;
  std::uint64_t operations = 0;
};

// Returns cases with each setting that a person may use alone, and with mixtures on which the model was wrong before.
// The caller sets seed, operations and first_fit.
std::vector<Case> named_cases();
// Draws settings and program by `seed`, which becomes the seed of the operations too.
Case random_case(std::uint64_t seed);

CaseHeader header_of(const Case& one);

// Returns the sizes at which a rule of the allocator changes under these settings, and sizes just beside them.
std::vector<std::uint64_t> border_sizes(const Settings& settings);

// Returns the operations of the program. Half of the sizes are log-uniform from 1 B to 1 GiB, a third are among 64
// repeated ones, the rest are at borders.
std::vector<Operation> operations_of(const Case& one);

}  // namespace ullage::oracle
