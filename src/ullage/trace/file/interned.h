// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names and shapes that events repeat thousands of times. Each is kept once and has a number. These are the tables of
// the writer; each becomes a part of the file.

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

// Text 0 is the empty one. Texts longer than kMostText bytes are cut, because a reader copies the texts into
// each op, and refuses a file that would need far more memory than its size (Allowance in take_reader.h).
class Texts final {
 public:
  static constexpr std::size_t kMostText = 240;

  // Both return the number of the text and add it if it is new. of_constant() is faster, because it recognizes a text
  // by its address. The text must stay there, unchanged, as long as this object lives.
  std::uint64_t of_constant(std::string_view text);
  std::uint64_t of(std::string_view text);

  void pack(PackedBytes& out) const;  // appends the table as the file has it
  std::size_t held() const;           // bytes of memory that the table takes

 private:
  struct Seen {
    const char* data = nullptr;
    std::size_t size = 0;
    std::uint64_t id = 0;
  };
  IdTable<Seen> by_place_;
  std::deque<std::string> texts_;  // from text 1 on; a deque keeps them in place for the views below
  std::unordered_map<std::string_view, std::uint64_t> by_text_;
};

// The dtype and the sizes of tensors. Number 0 means that the shape is not in the table and is written out with the
// event. That happens after kMostShapes shapes, in a program with new sizes for every tensor. It also happens for
// shapes of 2^16 dimensions or more, and for the second of two shapes with the same hash.
class Shapes final {
 public:
  static constexpr std::size_t kMostShapes = 1 << 16;

  // Returns the number of the shape and adds it if it is new; 0 as above.
  std::uint64_t of(std::uint8_t dtype, std::span<const std::int64_t> sizes);
  static std::uint64_t hash(std::uint8_t dtype, std::span<const std::int64_t> sizes);

  void pack(PackedBytes& out) const;  // as Texts::pack()
  std::size_t held() const;           // as Texts::held()

 private:
  struct Shape {
    std::uint8_t dtype = 0;
    std::uint32_t begin = 0, end = 0;  // the range in sizes_
  };
  IdTable<std::uint64_t> by_hash_;
  std::vector<Shape> shapes_;  // from shape 1 on
  std::vector<std::int64_t> sizes_;
};

// Appends a shape as the file has it. A negative size is written as 0.
void append_shape(PackedBytes& out, std::uint8_t dtype, std::span<const std::int64_t> sizes);

}  // namespace ullage::trace
