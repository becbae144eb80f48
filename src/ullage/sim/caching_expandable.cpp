// SPDX-License-Identifier: Apache-2.0
// Expandable segments. Each is a range of addresses, larger than the device. Pages are mapped in it when they are
// needed, and whole free pages are unmapped when memory is given back. A range has live, free and unmapped pieces:
//
//   |####|--|####|.................|    # live, - free, . unmapped
#include "ullage/base/check.h"
#include "ullage/sim/caching.h"

#include <algorithm>

namespace ullage::sim {
namespace {

constexpr Bytes kSmallPage = 2_MiB;  // page size in the small pool; in the large pool it is the large segment size

Bytes round_to(Bytes size, Bytes page) { return (size + page - Bytes{1}) / page.count * page.count; }

}  // namespace

Bytes CachingAllocator::page_of(bool small) const { return small ? kSmallPage : settings_.large_segment; }

// Corrects the best fit for expandable segments. A block of such a segment counts with the size that it can grow to:
// its own and that of the unmapped piece after it. If the next larger free block has less by this count, it is taken
// instead, and compared with the next in turn.
FreeBlocks::Cursor CachingAllocator::fit_expandable(const Pool& pool, FreeBlocks::Cursor best,
                                                    std::uint32_t stream) const {
  const FreeBlocks& free = pool.free[stream];
  const auto reach = [&](FreeBlocks::Cursor at) {
    const Block& block = blocks_[free.at(at).block];
    const bool grows = block.after != kNone && !blocks_[block.after].mapped;
    return grows ? block.size + blocks_[block.after].size : block.size;
  };
  while (blocks_[free.at(best).block].range != kNone) {
    const FreeBlocks::Cursor next = free.after(best);
    if (!next || reach(next) >= reach(best)) break;
    best = next;
  }
  return best;
}

// Takes a mapped piece of at least `size` out of the lists, mapping pages as needed. Returns none if the device has no
// more pages or a new range is too small. Pages that were mapped until then stay mapped and free.
BlockIndex CachingAllocator::take_expandable(Pool& pool, Bytes size, std::uint32_t stream) {
  BlockIndex index = find_expandable(pool, size, stream);
  const bool new_range = !blocks_[index].mapped && !blocks_[index].split();
  if (new_range && blocks_[index].size < size && !settings_.keeps_ranges_too_small) {
    give_up_range(index);
    return kNone;
  }
  if (!blocks_[index].mapped && !map(index, std::min(blocks_[index].size, size))) return kNone;
  while (blocks_[index].size < size) {
    const BlockIndex following = blocks_[index].after;
    if (following == kNone || !map(following, std::min(size - blocks_[index].size, blocks_[following].size)))
      return kNone;
    index = following;
  }
  erase_free(index);
  return index;
}

// Returns the first piece of the lowest run of idle pieces, mapped or not, of at least `size`. If there is none,
// reserves a new range and returns its only piece, which is unmapped.
BlockIndex CachingAllocator::find_expandable(Pool& pool, Bytes size, std::uint32_t stream) {
  for (const auto& [at, unmapped] : pool.unmapped[stream]) {
    const BlockIndex start = idle(blocks_[unmapped].before) ? blocks_[unmapped].before : unmapped;
    Bytes room;
    for (BlockIndex index = start; room < size && idle(index); index = blocks_[index].after) {
      room += blocks_[index].size;
    }
    if (room >= size) return start;
  }
  const Bytes page = page_of(pool.small);
  const Bytes span = round_to(device_.total() + device_.total() / 8, page);
  const Address base = device_.reserve(span);
  ranges_.push_back({base, span, page});
  Block whole{.address = base, .size = span, .stream = stream, .small = pool.small, .mapped = false};
  whole.range = static_cast<std::uint32_t>(ranges_.size() - 1);
  whole.born = number(nullptr);
  const BlockIndex index = make_block(whole);
  pool.unmapped[stream].emplace(base, index);
  return index;
}

// Maps whole pages at least at the first `size` bytes of an unmapped piece. The mapped part becomes free and merges
// with free neighbours; the rest stays unmapped. Returns false if the device has no more pages.
bool CachingAllocator::map(BlockIndex index, Bytes size) {
  const Range& range = ranges_[blocks_[index].range];
  Pool& pool = pool_of(blocks_[index]);
  const Address start = blocks_[index].address;
  const std::uint32_t stream = blocks_[index].stream;
  const Address first = range.base + (start - range.base) / range.page.count * range.page.count;
  const Bytes mapped = range.base + round_to(start + size - range.base, range.page) - first;
  if (!device_.commit(first, mapped)) return false;
  pool.unmapped[stream].erase(start);
  blocks_[index].mapped = true;
  if (mapped < blocks_[index].size) {
    Block rest = blocks_[index];
    rest.born = number(&rest);
    rest.address = start + mapped;
    rest.size -= mapped;
    rest.mapped = false;
    rest.before = index;
    const BlockIndex rest_index = make_block(rest);
    if (rest.after != kNone) blocks_[rest.after].before = rest_index;
    blocks_[index].after = rest_index;
    blocks_[index].size = mapped;
    pool.unmapped[stream].emplace(rest.address, rest_index);
  }
  merge_neighbours(index);
  insert_free(index);
  grow_reserved(mapped);
  tell(AllocatorEvent::Action::SegmentMapped, start, mapped, stream);
  return true;
}

// Unmaps the whole pages of a free piece, if any. Its ends, on pages shared with neighbours, stay free. Gives up the
// range if no page of it is left.
void CachingAllocator::unmap(BlockIndex index) {
  const Range range = ranges_[blocks_[index].range];
  const Block whole = blocks_[index];
  const Address first = range.base + round_to(whole.address - range.base, range.page);
  const Address last = range.base + (whole.address + whole.size - range.base) / range.page.count * range.page.count;
  if (first >= last) return;
  erase_free(index);
  if (first > whole.address) cut_off(index, whole.address, first - whole.address, true);
  if (whole.address + whole.size > last) cut_off(index, last, whole.address + whole.size - last, false);
  Block& block = blocks_[index];
  block.address = first;
  block.size = last - first;
  block.mapped = false;
  merge_neighbours(index);
  device_.decommit(first, last - first);
  stats_.reserved -= last - first;
  tell(AllocatorEvent::Action::SegmentUnmapped, first, last - first, whole.stream);
  pool_of(whole).unmapped[whole.stream].emplace(blocks_[index].address, index);
  if (!blocks_[index].split()) give_up_range(index);
}

// Gives the addresses of a range back to the device. The piece must be the whole range, unmapped.
void CachingAllocator::give_up_range(BlockIndex index) {
  const Block block = blocks_[index];
  pool_of(block).unmapped[block.stream].erase(block.address);
  drop_block(index);
  device_.unreserve(block.address, block.size);
}

// Makes a free block from the front or the end of a piece that is being unmapped.
void CachingAllocator::cut_off(BlockIndex index, Address at, Bytes size, bool front) {
  Block part = blocks_[index];
  part.born = number(&part);
  part.address = at;
  part.size = size;
  (front ? part.after : part.before) = index;
  const BlockIndex part_index = make_block(part);
  const BlockIndex outer = front ? part.before : part.after;
  if (outer != kNone) (front ? blocks_[outer].after : blocks_[outer].before) = part_index;
  (front ? blocks_[index].before : blocks_[index].after) = part_index;
  insert_free(part_index);
}

void CachingAllocator::merge_neighbours(BlockIndex index) {
  merge(index, blocks_[index].before);
  merge(index, blocks_[index].after);
}

}  // namespace ullage::sim
