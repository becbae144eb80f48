// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pickles written by hand, opcode by opcode, for tests: each function gives the bytes that build one value.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ullage::read::pickled {

using namespace std::string_literals;

inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string written;
  for (std::size_t i = 0; i < bytes; ++i) written += char(value >> (8 * i));
  return written;
}

inline std::string whole(const std::string& value) { return "\x80\x04" + value + "."; }
inline std::string none() { return "N"; }
inline std::string truth(bool value) { return value ? "\x88" : "\x89"; }
inline std::string integer(std::int64_t value) { return "\x8a\x08" + little(std::uint64_t(value), 8); }
inline std::string text(std::string_view value) { return "X" + little(value.size(), 4) + std::string(value); }
inline std::string real() { return "G" + "\x3f\xf8\0\0\0\0\0\0"s; }  // 1.5

inline std::string list(std::initializer_list<std::string> values) {
  std::string written = "](";
  for (const auto& value : values) written += value;
  return written + "e";
}
inline std::string tuple(std::initializer_list<std::string> values) {
  std::string written = "(";
  for (const auto& value : values) written += value;
  return written + "t";
}
inline std::string dict(std::initializer_list<std::pair<std::string_view, std::string>> pairs) {
  std::string written = "}(";
  for (const auto& [key, value] : pairs) written += text(key) + value;
  return written + "u";
}

inline std::string times(std::size_t count, std::string_view what) {
  std::string written;
  written.reserve(count * what.size());
  for (std::size_t i = 0; i < count; ++i) written += what;
  return written;
}

inline std::span<const std::byte> bytes(const std::string& file) { return std::as_bytes(std::span(file)); }

}  // namespace ullage::read::pickled
