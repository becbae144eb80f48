// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/slabs.h"

#include <algorithm>
#include <utility>

namespace ullage::store {

namespace {

// The class sizes in units of 64 bytes: 1 2 3 4 | 5 6 7 8 | 10 12 14 16 | 20 24 28 32 | ... | 640 768 896 1024.
constexpr std::array<Bytes, Slabs::kClasses> make_classes() {
  std::array<Bytes, Slabs::kClasses> classes{};
  std::uint64_t units = 0;
  std::uint64_t step = 1;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (i >= 8 && i % 4 == 0) step *= 2;
    units += step;
    classes[i] = Slabs::kBlockUnit * units;
  }
  return classes;
}

constexpr std::array<Bytes, Slabs::kClasses> kClassSizes = make_classes();
static_assert(kClassSizes.back() == Slabs::kBlockLimit);

constexpr Bytes class_size(std::size_t size_class) { return kClassSizes[size_class]; }

std::size_t class_of(Bytes size) {
  return static_cast<std::size_t>(std::lower_bound(kClassSizes.begin(), kClassSizes.end(), size) - kClassSizes.begin());
}

std::uint32_t blocks_in(std::size_t size_class) {
  return static_cast<std::uint32_t>(Slabs::kSlab.count / class_size(size_class).count);
}

}  // namespace

bool Slabs::full(const Slab& slab) { return slab.free.empty() && slab.fresh == blocks_in(slab.size_class); }

Bytes Slabs::block_size(Bytes size) { return class_size(class_of(size)); }

void Slabs::open(Slab& slab) {
  slab.place = open_[slab.size_class].size();
  open_[slab.size_class].push_back(&slab);
}

void Slabs::close(Slab& slab) {
  std::vector<Slab*>& open = open_[slab.size_class];
  open[slab.place] = open.back();
  open[slab.place]->place = slab.place;
  open.pop_back();
}

std::optional<Address> Slabs::take(Bytes size) {
  ULLAGE_CHECK(size > Bytes{} && size < kBlockLimit, "not a small block");
  const std::size_t size_class = class_of(size);
  if (open_[size_class].empty()) return std::nullopt;
  Slab& slab = *open_[size_class].back();
  std::uint32_t block = 0;
  if (!slab.free.empty()) {
    block = slab.free.back();
    slab.free.pop_back();
  } else {
    block = slab.fresh++;
    slab.asked.push_back(0);
  }
  slab.asked[block] = static_cast<std::uint32_t>(size.count);
  ++slab.used;
  if (full(slab)) close(slab);
  return slab.range.at + class_size(size_class) * block;
}

void Slabs::add_slab(Range range, Bytes size) {
  ULLAGE_CHECK(range.at.value % kSlab.count == 0 && range.size == kSlab, "a slab is 256 KiB at a multiple of it");
  auto slab = std::make_unique<Slab>();
  slab->size_class = class_of(size);
  const std::uint64_t key = range.at.value / kSlab.count;
  slab->range = std::move(range);
  open(*slab);
  slabs_.emplace(key, std::move(slab));
}

bool Slabs::owns(Address block) const { return slabs_.contains(block.value / kSlab.count); }

Slabs::Freed Slabs::give(Address address) {
  const auto found = slabs_.find(address.value / kSlab.count);
  ULLAGE_CHECK(found != slabs_.end(), "no slab holds this block");
  Slab& slab = *found->second;
  const std::uint64_t offset = (address - slab.range.at).count;
  const auto block = static_cast<std::uint32_t>(offset / class_size(slab.size_class).count);
  ULLAGE_CHECK(offset % class_size(slab.size_class).count == 0 && block < slab.fresh && slab.asked[block] != 0,
               "freed twice, or never allocated");
  const bool was_full = full(slab);
  Freed freed{Bytes{slab.asked[block]}, std::nullopt};
  slab.asked[block] = 0;
  slab.free.push_back(static_cast<std::uint16_t>(block));
  if (was_full) open(slab);
  if (--slab.used == 0) {
    close(slab);
    freed.emptied = std::move(slab.range);
    slabs_.erase(found);
  }
  return freed;
}

void Slabs::list(std::vector<LiveStorage>& into) const {
  for (const auto& [key, slab] : slabs_) {
    for (std::size_t block = 0; block < slab->asked.size(); ++block) {
      if (slab->asked[block] == 0) continue;
      into.push_back({slab->range.at + class_size(slab->size_class) * block, Bytes{slab->asked[block]}});
    }
  }
}

}  // namespace ullage::store
