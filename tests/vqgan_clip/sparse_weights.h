// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of weights of any size that take almost no disk space: a header, and zeros as a hole in the file.

#include "ullage/read/weights/weights_match.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ullage::test {

using WantedWeights = std::vector<read::WantedWeight>;

inline std::uint64_t count_of(const WantedWeights& wanted) {
  std::uint64_t count = 0;
  for (const auto& one : wanted) {
    std::uint64_t elements = 1;
    for (const std::int64_t extent : one.shape) elements *= static_cast<std::uint64_t>(extent);
    count += elements;
  }
  return count;
}

// Writes a safetensors file of half precision (or another type of two bytes). `prefix` is put before every name.
inline void write_sparse(const std::string& path, const WantedWeights& tensors, const std::string& prefix = "",
                         const std::string& dtype = "F16") {
  std::string header = "{";
  std::uint64_t place = 0;
  for (const auto& one : tensors) {
    std::string shape;
    for (const std::int64_t extent : one.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    const std::uint64_t end = place + 2 * count_of({one});
    header += (header.size() > 1 ? ",\"" : "\"") + prefix + one.name + R"(":{"dtype":")" + dtype + R"(","shape":[)" +
              shape + R"(],"data_offsets":[)" + std::to_string(place) + "," + std::to_string(end) + "]}";
    place = end;
  }
  header += "}";
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (int byte = 0; byte < 8; ++byte) out.put(static_cast<char>(header.size() >> (8 * byte) & 0xff));
  out << header;
  out.close();
  std::filesystem::resize_file(path, 8 + header.size() + place);
}

}  // namespace ullage::test
