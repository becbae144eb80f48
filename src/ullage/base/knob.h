// SPDX-License-Identifier: Apache-2.0
#pragma once

// A size of a program that a person may vary. The program names its knobs through runtime.h, a trace file keeps them,
// and `ullage predict` extrapolates over them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ullage {

struct Knob {
  std::string name;  // "batch"
  std::int64_t value = 0;
  friend bool operator==(const Knob&, const Knob&) = default;
};

// An option of a shipped program that changes what the program does, so that no law of the prediction covers it. For
// example, a larger image side takes more layers. Named as on the command line, without the dashes.
struct Choice {
  std::string name;                  // "image-size"
  std::int64_t value = 0;            // the recorded one
  std::vector<std::int64_t> values;  // allowed ones, ascending; if there are `words`, the last one is preferred
  std::vector<std::string> words{};  // how each value is written on the command line; empty: as its number
  // "rounding" or "different": a smaller value does the same work in another way, with results that differ so
  // (trace::ResultChange). Empty: another value is other work, such as a smaller picture.
  std::string results{};

  // As it is written on the command line. `one` must be one of `values`.
  std::string word(std::int64_t one) const {
    for (std::size_t i = 0; i < words.size() && i < values.size(); ++i) {
      if (values[i] == one) return words[i];
    }
    return std::to_string(one);
  }
  friend bool operator==(const Choice&, const Choice&) = default;
};

}  // namespace ullage
