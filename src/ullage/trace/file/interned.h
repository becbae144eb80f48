// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names and shapes that events repeat thousands of times, each kept once and called by a number. Writer's side; both
// become one part of the file each.

#include "ullage/trace/file/id_table.h"
#include "ullage/trace/file/packed.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ullage::trace {

// Text 0 is the empty one. Longer texts than kMostText bytes are cut: a reader refuses what would take far more memory
// than its file, and each op carries its texts.
class Texts final {
 public:
  static constexpr std::size_t kMostText = 240;

  // Of a text that lives for ever at its place: known again by the address.
  std::uint64_t of_constant(std::string_view text);
  std::uint64_t of(std::string_view text);

  void pack(PackedBytes& out) const;
  std::size_t held() const;

 private:
  struct Seen {
    const char* data = nullptr;
    std::size_t size = 0;
    std::uint64_t id = 0;
  };
  IdTable<Seen> by_place_;
  std::deque<std::string> texts_;  // from text 1 on; they keep their places, for the views below
  std::unordered_map<std::string_view, std::uint64_t> by_text_;
};

// The dtype and the sizes of a tensor. Shape 0 is none: it is written out with the event, as are those after the first
// kMostShapes (a program whose every tensor has sizes of its own), and the second of two with one hash.
class Shapes final {
 public:
  static constexpr std::size_t kMostShapes = 1 << 16;

  std::uint64_t of(std::uint8_t dtype, std::span<const std::int64_t> sizes);
  static std::uint64_t hash(std::uint8_t dtype, std::span<const std::int64_t> sizes);

  void pack(PackedBytes& out) const;
  std::size_t held() const;

 private:
  struct Shape {
    std::uint8_t dtype = 0;
    std::uint32_t begin = 0, end = 0;  // in sizes_
  };
  IdTable<std::uint64_t> by_hash_;
  std::vector<Shape> shapes_;  // from shape 1 on
  std::vector<std::int64_t> sizes_;
};

// As the file has it; sizes are not negative.
void append_shape(PackedBytes& out, std::uint8_t dtype, std::span<const std::int64_t> sizes);

}  // namespace ullage::trace
