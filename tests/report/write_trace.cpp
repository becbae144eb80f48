// SPDX-License-Identifier: Apache-2.0

// For test_page.py and test_convert.py: writes a trace as Ullage's recorder would do it.
// usage: write_trace small|three|failed|long FILE

#include "small_training.h"

#include <fstream>
#include <string>

namespace {

ullage::trace::TraceFile file_of_kind(const std::string& kind) {
  if (kind == "three") return ullage::file_of_three();
  if (kind == "failed") return ullage::failed_file();
  if (kind == "small") return ullage::small_file();
  ullage::SmallTraining program(4);
  program.steps(1500);  // some 100,000 events
  return ullage::file_of({program.take()});
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  std::ofstream out(words[2], std::ios::binary);
  ullage::trace::write_trace_file(file_of_kind(words[1]), out);
  return out ? 0 : 1;
}
