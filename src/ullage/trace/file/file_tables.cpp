// SPDX-License-Identifier: Apache-2.0
// Reads the tables of a trace file (texts and shapes), and looks ids up (IdRanges). take_reader.h declares both.
#include "ullage/trace/file/take_reader.h"

#include <algorithm>
#include <iterator>

namespace ullage::trace {
namespace {}  // namespace

std::optional<Problem> FileTables::read_texts(std::span<const std::byte> content, Allowance& allowance) {
  PackedReader in(content);
  const std::uint64_t count = in.number();
  texts.assign(1, {});
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = in.number();
    const std::string_view text = in.text(size);
    if (in.failed()) return Problem{"its names are cut off", in.at()};
    if (!allowance.spend(sizeof(std::string) + size)) return Problem{kTooMuch, in.at()};
    texts.emplace_back(text);
  }
  if (in.failed() || !in.done()) return Problem{"other bytes follow its names", in.at()};
  return std::nullopt;
}

std::optional<Problem> FileTables::read_shapes(std::span<const std::byte> content, Allowance& allowance) {
  PackedReader in(content);
  const std::uint64_t count = in.number();
  shapes.assign(1, {});
  for (std::uint64_t i = 0; i < count; ++i) {
    Shape shape;
    shape.dtype = in.byte();
    const std::uint64_t sizes = in.number();
    if (in.failed() || sizes > in.left()) return Problem{"its shapes are cut off", in.at()};
    if (!allowance.spend(sizeof(Shape) + sizes * sizeof(std::int64_t))) return Problem{kTooMuch, in.at()};
    for (std::uint64_t d = 0; d < sizes; ++d) {
      const std::uint64_t size = in.number();
      if (size > INT64_MAX) return Problem{"a size of a tensor is above 2^63 - 1", in.at()};
      shape.sizes.push_back(static_cast<std::int64_t>(size));
    }
    if (in.failed()) return Problem{"its shapes are cut off", in.at()};
    shapes.push_back(std::move(shape));
  }
  if (in.failed() || !in.done()) return Problem{"other bytes follow its shapes", in.at()};
  return std::nullopt;
}

void IdRanges::add(std::uint64_t id) {
  if (ranges_.empty() || ranges_.back().end != id) ranges_.push_back({id, id, size_});
  ranges_.back().end = id + 1;
  ++size_;
}

std::optional<std::uint64_t> IdRanges::find(std::uint64_t id) const {
  const auto behind = std::ranges::upper_bound(ranges_, id, {}, &Range::begin);
  if (behind == ranges_.begin()) return std::nullopt;
  const Range& range = *std::prev(behind);
  if (id >= range.end) return std::nullopt;
  return range.place + (id - range.begin);
}

}  // namespace ullage::trace
