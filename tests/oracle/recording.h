// SPDX-License-Identifier: Apache-2.0
#pragma once

// What torch's allocator did in a number of cases, as hashes. With it the model is tested on machines that have no CUDA
// wheel of torch. There is one file for each version: tests/data/oracle/torch-<version>.json.

#include "digest.h"
#include "runs.h"

#include "ullage/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::oracle {

struct RecordedCase {
  Case one;                           // rebuilt from name, seed, number of operations and kind of addresses
  std::string settings;               // when the case was recorded, to notice that the case has changed since
  std::uint64_t operations_hash = 0;  // for the same purpose
  std::uint64_t hash = 0;             // of all events
  std::uint64_t events = 0;
  std::vector<std::uint32_t> chunks;  // see Digest::chunks
  Totals totals;
};

struct Recording {
  std::string torch;  // "2.14.1"
  std::vector<RecordedCase> cases;
};

// Returns the cases that a recording holds. Many short random cases reveal a wrong model better than few long ones.
std::vector<Case> cases_to_record();

RecordedCase record(const Case& one, const std::vector<Operation>& operations, const Run& real);

Result<Recording> read_recording(const std::string& file);
Status write_recording(const std::string& file, const Recording& recording);

// Runs the model. Returns nothing if its events have the recorded hash and its totals are equal. Otherwise returns a
// line that says what differs, and between which events.
std::optional<std::string> difference(const RecordedCase& recorded, const Behaviour& behaviour);

}  // namespace ullage::oracle
