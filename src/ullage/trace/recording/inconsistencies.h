// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines about what a file contradicts itself in. A damaged history contradicts itself at every event, so each kind gets
// a few lines with their event numbers and then one with the count of the rest.

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

  // "event 7: KIND: DETAIL". `detail` is called only where the line is kept.
  template <class Detail>
  void add(std::string_view kind, EventId event, Detail&& detail) {
    if (count(kind)) add_line("event " + std::to_string(event.value) + ": " + std::string(kind) + ": " + detail());
  }
  // "KIND: DETAIL": of the file as a whole.
  template <class Detail>
  void add(std::string_view kind, Detail&& detail) {
    if (count(kind)) add_line(std::string(kind) + ": " + detail());
  }

  // The lines in the order in which they were added, then "KIND: 12 more" for each kind with more.
  std::vector<std::string> take();

 private:
  bool count(std::string_view kind);  // true: there is room for a line
  void add_line(std::string line) { lines_.push_back(std::move(line)); }

  std::vector<std::string> lines_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace ullage::trace
