// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/layout.h"

#include "ullage/base/sizes.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace ullage::sim {
namespace {

constexpr std::uint64_t kImplausibleFrom = 1ull << 60;  // for sizes and addresses
constexpr Bytes kRangeTail{1ull << 40};  // a range ends at most this far after its last page in the recording

}  // namespace

bool plausible(Address at, Bytes size) {
  return size.count > 0 && size.count < kImplausibleFrom && at.value < kImplausibleFrom;
}

Layout::Layout(const trace::DeviceRecording& recorded, const CachingSettings& settings)
    : recorded_(recorded), settings_(settings) {
  for (const trace::Segment& segment : recorded.segments) {
    if (!fault_.empty()) return;
    add_segment(segment);
  }
  add_ranges();
}

void Layout::add_segment(const trace::Segment& segment) {
  if (segment.pool != std::pair<std::uint64_t, std::uint64_t>{}) {
    return fail("a private pool (CUDA graphs), which the model lacks,", segment.address, segment.size);
  }
  Bytes sum;
  Address next = segment.address;
  Area area{segment.stream, segment.small, segment.expandable, {}};
  for (const trace::Block& block : segment.blocks) {
    const bool fits = plausible(next, block.size) && block.size <= saturating_sub(segment.size, sum) &&
                      block.size.count % CachingSettings::kUnit.count == 0;
    if (!fits || block.address != next) return fail("a block that does not fit its segment", next, block.size);
    const bool free = block.state == trace::Block::State::Inactive;
    area.pieces.push_back({next, {block.size, block.requested, free ? State::Free : State::Live}});
    next = next + block.size;
    sum += block.size;
  }
  if (sum != segment.size || sum.count == 0) {
    return fail("blocks that do not add up to their segment", segment.address, segment.size);
  }
  const auto above = areas_.upper_bound(segment.address);
  const bool free_below = above == areas_.begin() || std::prev(above)->second.end() <= segment.address;
  if (!free_below || (above != areas_.end() && above->first < area.end())) {
    return fail("a segment that overlaps another", segment.address, segment.size);
  }
  areas_.emplace(segment.address, std::move(area));
}

Layout::Area* Layout::area_at(Address at) {
  const auto above = areas_.upper_bound(at);
  if (above == areas_.begin()) return nullptr;
  Area& area = std::prev(above)->second;
  return at < area.end() ? &area : nullptr;
}

// Turns [at, at + size) into the piece `to`. Returns false unless it lies within one piece of the state `from`.
bool Layout::change(Area& area, Address at, Bytes size, State from, Piece to) {
  auto found = std::upper_bound(area.pieces.begin(), area.pieces.end(), at,
                                [](Address address, const Placed& placed) { return address < placed.at; });
  if (found == area.pieces.begin()) return false;
  const Placed whole = *--found;
  if (whole.piece.state != from || at + size > whole.end()) return false;
  to.size = size;
  *found = {at, to};
  if (at + size < whole.end()) {
    const Piece rest{whole.end() - (at + size), Bytes{}, from};
    found = std::prev(area.pieces.insert(std::next(found), {at + size, rest}));
  }
  if (whole.at < at) area.pieces.insert(found, {whole.at, {at - whole.at, Bytes{}, from}});
  return true;
}

// Merges a free or unmapped piece with neighbours of the same state.
void Layout::merge_around(Area& area, std::size_t index) {
  auto& pieces = area.pieces;
  const State state = pieces[index].piece.state;
  if (index + 1 < pieces.size() && pieces[index + 1].piece.state == state) {
    pieces[index].piece.size += pieces[index + 1].piece.size;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  }
  if (index > 0 && pieces[index - 1].piece.state == state) {
    pieces[index - 1].piece.size += pieces[index].piece.size;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

void Layout::undo_all() {
  for (event_ = recorded_.events.size(); event_-- > 0 && fault_.empty();)
    std::visit([&](const auto& event) { undo(event); }, recorded_.events[event_].what);
}

std::vector<Layout::Segment> Layout::segments() const {
  std::vector<Segment> all;
  for (const auto& [at, area] : areas_) {
    if (area.unmapped()) continue;  // torch gives an expandable segment without pages up
    Segment segment{at, area.stream, area.small, area.expandable, {}};
    for (const Placed& placed : area.pieces) segment.pieces.push_back(placed.piece);
    all.push_back(std::move(segment));
  }
  return all;
}

void Layout::fail(const char* what, Address at, Bytes size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string address;
  for (std::uint64_t rest = at.value; rest != 0 || address.empty(); rest /= 16) address += kDigits[rest % 16];
  std::reverse(address.begin(), address.end());
  const bool in_events = event_ < recorded_.events.size();
  fault_ = (in_events ? "event " + std::to_string(event_) + ": " : std::string()) + what + " at 0x" + address + ", " +
           to_string(size);
}

// ---- expandable segments -------------------------------------------------------------------------------------------

// In a file, each stretch of mapped pages of an expandable segment is a segment. This takes neighbouring stretches of
// one stream and pool for one range.
void Layout::add_ranges() {
  const std::vector<Stretch> seen = stretches();
  for (std::size_t first = 0; first < seen.size() && fault_.empty();) {
    std::size_t last = first + 1;
    while (last < seen.size() && seen[last].stream == seen[first].stream && seen[last].small == seen[first].small) {
      ++last;
    }
    add_range(seen, first, last);
    first = last;
  }
}

std::vector<Layout::Stretch> Layout::stretches() const {
  std::vector<Stretch> seen;
  for (const auto& [at, area] : areas_)
    if (area.expandable) seen.push_back({at, area.end() - at, area.stream, area.small});
  const auto add = [&](const auto& event) {
    const bool small = event.bytes.count % settings_.large_segment.count != 0;
    if (plausible(event.address, event.bytes)) seen.push_back({event.address, event.bytes, event.stream, small});
  };
  for (const trace::RecordedEvent& event : recorded_.events) {
    if (const auto* map = std::get_if<trace::record::SegmentMap>(&event.what)) add(*map);
    if (const auto* unmap = std::get_if<trace::record::SegmentUnmap>(&event.what)) add(*unmap);
  }
  std::stable_sort(seen.begin(), seen.end(), [](const Stretch& a, const Stretch& b) { return a.at < b.at; });
  return seen;
}

void Layout::add_range(const std::vector<Stretch>& seen, std::size_t first, std::size_t last) {
  const Address base = seen[first].at;
  Address end = base;
  for (std::size_t at = first; at < last; ++at) end = std::max(end, seen[at].at + seen[at].size);
  Address limit = end + kRangeTail;
  if (last < seen.size()) limit = std::min(limit, std::max(end, seen[last].at));
  if (const auto above = areas_.lower_bound(end); above != areas_.end()) limit = std::min(limit, above->first);
  Area range{seen[first].stream, seen[first].small, true, {}};
  range.pieces.push_back({base, {limit - base, Bytes{}, State::Unmapped}});
  for (std::size_t at = first; at < last; ++at) {
    const auto found = areas_.find(seen[at].at);
    if (found == areas_.end() || !found->second.expandable) continue;
    for (const Placed& placed : found->second.pieces) {
      if (!change(range, placed.at, placed.piece.size, State::Unmapped, placed.piece)) {
        return fail("pages that are mapped twice", placed.at, placed.piece.size);
      }
    }
    areas_.erase(found);
  }
  areas_.emplace(base, std::move(range));
}

}  // namespace ullage::sim
