// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects lines about contradictions in a file. A damaged file may contradict itself at every event. So each kind of
// contradiction gets a few lines with their event numbers, then one line with the count of the rest.

#include "ullage/base/ids.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {

class Inconsistencies final {
 public:
  static constexpr std::uint64_t kLinesPerKind = 3;

  // Adds "event 7: KIND: DETAIL". Calls `detail` only if the line is kept.
  template <class Detail>
  void add(std::string_view kind, EventId event, Detail&& detail) {
    if (count(kind)) add_line("event " + std::to_string(event.value) + ": " + std::string(kind) + ": " + detail());
  }
  // Adds "KIND: DETAIL", for the file as a whole.
  template <class Detail>
  void add(std::string_view kind, Detail&& detail) {
    if (count(kind)) add_line(std::string(kind) + ": " + detail());
  }

  // Returns and forgets the lines, in the order of their addition, then "KIND: 12 more" for each kind with more.
  std::vector<std::string> take();

 private:
  bool count(std::string_view kind);  // true: the line is kept
  void add_line(std::string line) { lines_.push_back(std::move(line)); }

  std::vector<std::string> lines_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace ullage::trace
