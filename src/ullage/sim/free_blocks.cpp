// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/free_blocks.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <bit>

namespace ullage::sim {
namespace {

constexpr std::uint64_t kUnit = 512;
constexpr int kBits = 4;  // 2^4 = 16 classes for each doubling

}  // namespace

std::size_t FreeBlocks::class_of(Bytes size) {
  const std::uint64_t units = size.count / kUnit;
  if (units < (1u << kBits)) return units;
  const int shift = std::bit_width(units) - 1 - kBits;
  return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(units >> shift);
}

std::size_t FreeBlocks::next_used(std::size_t from) const {
  if (from >= kClasses) return kClasses;
  std::size_t word = from / 64;
  std::uint64_t bits = used_[word] & (~std::uint64_t{0} << (from % 64));
  while (bits == 0) {
    if (++word == used_.size()) return kClasses;
    bits = used_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::size_t FreeBlocks::last_used(std::size_t below) const {
  for (std::size_t at = below; at-- > 0;)
    if (!classes_[at].empty()) return at;
  return kClasses;
}

void FreeBlocks::insert(const Entry& entry) {
  const std::size_t number = class_of(entry.size);
  std::vector<Entry>& entries = classes_[number];
  entries.insert(std::lower_bound(entries.begin(), entries.end(), entry), entry);
  used_[number / 64] |= std::uint64_t{1} << (number % 64);
  ++count_;
}

void FreeBlocks::erase(const Entry& entry) {
  const std::size_t number = class_of(entry.size);
  std::vector<Entry>& entries = classes_[number];
  const auto found = std::lower_bound(entries.begin(), entries.end(), entry);
  ULLAGE_CHECK(found != entries.end() && *found == entry, "a block is not among the free ones");
  entries.erase(found);
  if (entries.empty()) used_[number / 64] &= ~(std::uint64_t{1} << (number % 64));
  --count_;
}

FreeBlocks::Cursor FreeBlocks::first_from(Bytes size) const {
  const std::size_t number = class_of(size);
  const std::vector<Entry>& entries = classes_[number];
  const auto found = std::lower_bound(entries.begin(), entries.end(), Entry{size, 0, Address{}, 0});
  if (found != entries.end()) return {number, static_cast<std::size_t>(found - entries.begin())};
  return {next_used(number + 1), 0};
}

FreeBlocks::Cursor FreeBlocks::after(Cursor here) const {
  if (here.at + 1 < classes_[here.size_class].size()) return {here.size_class, here.at + 1};
  return {next_used(here.size_class + 1), 0};
}

FreeBlocks::Cursor FreeBlocks::before(Cursor here) const {
  if (here && here.at > 0) return {here.size_class, here.at - 1};
  const std::size_t number = last_used(here.size_class);
  if (number == kClasses) return {};
  return {number, classes_[number].size() - 1};
}

std::vector<FreeBlocks::Entry> FreeBlocks::all() const {
  std::vector<Entry> entries;
  entries.reserve(count_);
  for (std::size_t at = next_used(0); at < kClasses; at = next_used(at + 1))
    entries.insert(entries.end(), classes_[at].begin(), classes_[at].end());
  return entries;
}

}  // namespace ullage::sim
