// SPDX-License-Identifier: Apache-2.0
#include "image/decode.h"

#include "image/bad_picture.h"
#include "image/decode_jpeg.h"
#include "image/decode_png.h"
#include "image/input_file.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace ullage::image {
namespace {

constexpr std::array<std::uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<std::uint8_t, 3> kJpeg = {0xff, 0xd8, 0xff};

template <std::size_t N>
bool starts_with(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, N>& magic) {
  return bytes.size() >= N && std::equal(magic.begin(), magic.end(), bytes.begin());
}

// "68 65 6c 6c"
std::string first_bytes(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size() && i < 4; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%s%02x", i == 0 ? "" : " ", unsigned{bytes[i]});
    text += hex;
  }
  return text;
}

}  // namespace

Status decode(const std::string& path, RowSink& sink, const ChargeMemory& charge, Pixels pixels) {
  ULLAGE_TRY_VALUE(InputFile file, InputFile::open(path));
  const auto start = file.peek();
  if (starts_with(start, kPng)) return decode_png(file, sink, charge, pixels);
  if (starts_with(start, kJpeg)) return decode_jpeg(file, sink, charge, pixels);
  if (file.read_errno() != 0) return failure(file, CGuard{}, "at its start");
  if (start.empty()) return bad_picture(file, "is not a PNG or JPEG: it is empty");
  return bad_picture(file, "is not a PNG or JPEG: it starts with the bytes " + first_bytes(start));
}

}  // namespace ullage::image
