// SPDX-License-Identifier: Apache-2.0

// For test_convert.py: reads FILE as `ullage explain` does and writes it in each of the other formats that can hold it.
// usage: convert_file FILE MEMORY_VIZ PERFETTO

#include "ullage/read/input.h"
#include "ullage/report/convert/convert.h"

#include <fstream>
#include <iostream>

int main(int count, char** words) {
  if (count != 4) return 2;
  const auto input = ullage::read::read_input_file(words[1]);
  if (!input) {
    std::cerr << input.error().text() << "\n";
    return 3;
  }
  if (!std::holds_alternative<ullage::trace::Profile>(*input)) {
    std::ofstream out(words[2], std::ios::binary);
    if (!ullage::report::write_memory_viz(*input, out)) return 1;
  }
  std::ofstream out(words[3], std::ios::binary);
  const ullage::Status written = ullage::report::write_perfetto(*input, out);
  if (!written) std::cerr << written.error().text() << "\n";
  return written ? 0 : 1;
}
