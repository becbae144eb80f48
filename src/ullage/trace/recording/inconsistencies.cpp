// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/recording/inconsistencies.h"

#include <utility>

namespace ullage::trace {

bool Inconsistencies::count(std::string_view kind) {
  auto found = counts_.find(kind);
  if (found == counts_.end()) found = counts_.emplace(kind, 0).first;
  return ++found->second <= kLinesPerKind;
}

std::vector<std::string> Inconsistencies::take() {
  for (const auto& [kind, count] : std::exchange(counts_, {})) {
    if (count > kLinesPerKind) add_line(kind + ": " + std::to_string(count - kLinesPerKind) + " more");
  }
  return std::exchange(lines_, {});
}

}  // namespace ullage::trace
