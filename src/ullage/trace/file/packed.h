// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packs numbers into as few bytes as they need (LEB128, see docs/trace_file.md). Each byte has seven bits of the
// number, the low ones first. Its eighth bit says that more bytes follow. Signed numbers are folded first: 0, -1, 1, -2
// become 0, 1, 2, 3.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::trace {

inline constexpr std::size_t kMostPacked = 10;  // bytes of one number

constexpr std::uint64_t fold(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unfold(std::uint64_t folded) {
  return static_cast<std::int64_t>(folded >> 1) ^ -static_cast<std::int64_t>(folded & 1);
}

// Writes to a place with room for kMostPacked bytes. Returns the place after the number.
inline std::byte* put_packed(std::byte* to, std::uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<std::byte>(value);
  return to;
}

using PackedBytes = std::vector<std::byte>;

inline void append_packed(PackedBytes& out, std::uint64_t value) {
  std::byte bytes[kMostPacked];
  out.insert(out.end(), bytes, put_packed(bytes, value));
}
inline void append_text(PackedBytes& out, std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), begin, begin + text.size());
}

// Reads from bytes that may be damaged. A read past the end, or a number of more than 64 bits, sets failed(). Then this
// and all later reads return zero or nothing.
class PackedReader final {
 public:
  explicit PackedReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (failed_ || at_ == bytes_.size()) return fail();
      const auto byte = static_cast<std::uint64_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) return fail();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  std::uint8_t byte() {
    if (failed_ || at_ == bytes_.size()) return static_cast<std::uint8_t>(fail());
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::string_view text(std::uint64_t size) {
    if (failed_ || size > left()) return fail(), std::string_view();
    at_ += size;
    return {reinterpret_cast<const char*>(bytes_.data() + at_ - size), static_cast<std::size_t>(size)};
  }

  bool failed() const { return failed_; }
  bool done() const { return failed_ || at_ == bytes_.size(); }
  std::size_t at() const { return at_; }  // bytes read
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::uint64_t fail() { return failed_ = true, 0; }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace ullage::trace
