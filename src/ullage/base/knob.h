// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a person may vary of a program: in runtime.h a program names them, a recording keeps them, a prediction goes by
// them.

#include <cstdint>
#include <string>
#include <vector>

namespace ullage {

struct Knob {
  std::string name;  // "batch"
  std::int64_t value = 0;
  friend bool operator==(const Knob&, const Knob&) = default;
};

// An option of a shipped program that changes what it does, so that no law goes over it: a side of pictures that takes
// more layers. Named as on the command line, without the dashes.
struct Choice {
  std::string name;                  // "image-size"
  std::int64_t value = 0;            // that was recorded
  std::vector<std::int64_t> values;  // that it may have, ascending; more means more memory
  friend bool operator==(const Choice&, const Choice&) = default;
};

}  // namespace ullage
