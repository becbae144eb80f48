// SPDX-License-Identifier: Apache-2.0
#pragma once

// What torch's allocator did in a number of cases, as hashes, for machines where no wheel of torch is: one file for
// each version, tests/data/oracle/torch-<version>.json.

#include "digest.h"
#include "runs.h"

#include "ullage/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::oracle {

struct RecordedCase {
  Case one;                           // made anew from name, seed, number of operations and addresses
  std::string settings;               // as they were when it was recorded
  std::uint64_t operations_hash = 0;  // likewise
  std::uint64_t hash = 0;             // of all events
  std::uint64_t events = 0;
  std::vector<std::uint32_t> chunks;  // see Digest::chunks
  Totals totals;
};

struct Recording {
  std::string torch;  // "2.14.1"
  std::vector<RecordedCase> cases;
};

// The cases that a recording holds. Random ones of few operations tell wrong models apart better than long ones.
std::vector<Case> cases_to_record();

RecordedCase record(const Case& one, const std::vector<Operation>& operations, const Run& real);

Result<Recording> read_recording(const std::string& file);
Status write_recording(const std::string& file, const Recording& recording);

// Runs the model. None: its events have the recorded hash. Else a line that says what differs, and between which
// events.
std::optional<std::string> difference(const RecordedCase& recorded, const Behaviour& behaviour);

}  // namespace ullage::oracle
