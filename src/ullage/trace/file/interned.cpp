// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/interned.h"

#include <algorithm>

namespace ullage::trace {
namespace {

constexpr std::uint64_t kMix = 0xd1342543de82ef95u;  // an odd number with well-mixed bits

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kMix;
  return hash ^ (hash >> 29);
}

std::uint64_t as_key(std::uint64_t hash) { return hash == IdTable<int>::kNone ? 0 : hash; }

}  // namespace

std::uint64_t Texts::of_constant(std::string_view text) {
  if (text.empty()) return 0;
  Seen& seen = by_place_[as_key(mixed(reinterpret_cast<std::uintptr_t>(text.data()), text.size()))];
  if (seen.data == text.data() && seen.size == text.size()) return seen.id;
  const std::uint64_t id = of(text);
  if (seen.data == nullptr) seen = {text.data(), text.size(), id};  // at a hash collision the first text keeps the slot
  return id;
}

std::uint64_t Texts::of(std::string_view text) {
  text = text.substr(0, kMostText);
  if (text.empty()) return 0;
  if (const auto known = by_text_.find(text); known != by_text_.end()) return known->second;
  texts_.emplace_back(text);
  by_text_.emplace(texts_.back(), texts_.size());
  return texts_.size();
}

void Texts::pack(PackedBytes& out) const {
  append_packed(out, texts_.size());
  for (const std::string& text : texts_) {
    append_packed(out, text.size());
    append_text(out, text);
  }
}

std::size_t Texts::held() const {
  constexpr std::size_t kEntry = sizeof(std::string) + sizeof(std::string_view) + 4 * sizeof(void*);
  std::size_t bytes = by_place_.held() + texts_.size() * kEntry;
  for (const std::string& text : texts_) bytes += text.capacity();
  return bytes;
}

std::uint64_t Shapes::hash(std::uint8_t dtype, std::span<const std::int64_t> sizes) {
  std::uint64_t hash = mixed(kMix, dtype);
  for (const std::int64_t size : sizes) hash = mixed(hash, static_cast<std::uint64_t>(size));
  return as_key(hash);
}

std::uint64_t Shapes::of(std::uint8_t dtype, std::span<const std::int64_t> sizes) {
  const std::uint64_t key = hash(dtype, sizes);
  const std::uint64_t* known = by_hash_.find(key);
  if (known != nullptr) {
    const Shape& shape = shapes_[*known - 1];
    const std::span<const std::int64_t> same(sizes_.data() + shape.begin, shape.end - shape.begin);
    return shape.dtype == dtype && std::ranges::equal(same, sizes) ? *known : 0;
  }
  if (shapes_.size() == kMostShapes || sizes.size() > UINT16_MAX) return 0;
  const auto begin = static_cast<std::uint32_t>(sizes_.size());  // the limits above keep it below 2^32
  sizes_.insert(sizes_.end(), sizes.begin(), sizes.end());
  shapes_.push_back({dtype, begin, static_cast<std::uint32_t>(sizes_.size())});
  return by_hash_[key] = shapes_.size();
}

void Shapes::pack(PackedBytes& out) const {
  append_packed(out, shapes_.size());
  for (const Shape& shape : shapes_) {
    append_shape(out, shape.dtype, {sizes_.data() + shape.begin, shape.end - shape.begin});
  }
}

std::size_t Shapes::held() const {
  return by_hash_.held() + shapes_.capacity() * sizeof(Shape) + sizes_.capacity() * sizeof(std::int64_t);
}

void append_shape(PackedBytes& out, std::uint8_t dtype, std::span<const std::int64_t> sizes) {
  out.push_back(static_cast<std::byte>(dtype));
  append_packed(out, sizes.size());
  for (const std::int64_t size : sizes) append_packed(out, static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0)));
}

}  // namespace ullage::trace
