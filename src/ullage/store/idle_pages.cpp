// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/idle_pages.h"

#include <algorithm>
#include <utility>

namespace ullage::store {

namespace {

// Is a piece of length `a` better than one of length `b` if `wanted` bytes are needed? The best is the smallest piece
// that is enough. If none is enough, it is the largest, because the caller then needs the fewest pieces.
bool better(Bytes a, Bytes b, Bytes wanted) {
  if ((a >= wanted) != (b >= wanted)) return a >= wanted;
  return a >= wanted ? a < b : a > b;
}

}  // namespace

void IdlePages::add(Range range) {
  bytes_ += range.size;
  if (runs_) return runs_->give({range.at, range.size});
  in_ranges_ += range.pieces.size();
  const std::uint64_t size = range.size.count;
  ranges_.push_back(std::move(range));
  by_size_[size].push_back(std::prev(ranges_.end()));
}

void IdlePages::add(IdlePiece piece) {
  bytes_ += piece.length;
  if (runs_) return runs_->give({piece.at, piece.length});
  (piece.length < kLeastMove ? crumbs_ : pieces_of(piece.kind)).push_back(piece);
}

Range IdlePages::remove(Ranges::iterator at) {
  const auto same_size = by_size_.find(at->size.count);
  std::deque<Ranges::iterator>& places = same_size->second;
  // take_whole() removes the newest range of its size, which is the last here. So that case needs no search.
  places.erase(places.back() == at ? std::prev(places.end()) : std::find(places.begin(), places.end(), at));
  if (places.empty()) by_size_.erase(same_size);
  Range range = std::move(*at);
  ranges_.erase(at);
  bytes_ -= range.size;
  in_ranges_ -= range.pieces.size();
  return range;
}

std::optional<Range> IdlePages::take_whole(Bytes size) {
  if (runs_) {
    if (size.count % kHugePage.count != 0) return std::nullopt;  // a card's page is not divided
    const std::optional<Address> at = runs_->take(size, kHugePage);
    if (!at) return std::nullopt;
    bytes_ -= size;
    return Range{*at, size, {{size, PageKind::Huge}}};
  }
  const auto found = by_size_.find(size.count);
  if (found == by_size_.end()) return std::nullopt;
  return remove(found->second.back());
}

void IdlePages::take_apart(Ranges::iterator whole) {
  const Range range = remove(whole);
  Address at = range.at;
  for (const Piece& piece : range.pieces) {
    add(IdlePiece{at, piece.length, piece.kind});
    at = at + piece.length;
  }
}

// Finds the whole range that has the best piece of this kind for `wanted` bytes.
IdlePages::Best IdlePages::best_range(PageKind kind, Bytes wanted) {
  Best best{ranges_.end(), Bytes{}};
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    for (const Piece& piece : range->pieces) {
      if (piece.kind == kind && better(piece.length, best.length, wanted)) best = {range, piece.length};
    }
  }
  return best;
}

void IdlePages::bring_best_to_the_back(std::vector<IdlePiece>& from, Bytes wanted) {
  const auto best = std::min_element(from.begin(), from.end(), [wanted](const IdlePiece& a, const IdlePiece& b) {
    return better(a.length, b.length, wanted);
  });
  if (best != from.end()) std::swap(*best, from.back());
}

// Takes the last piece of `from` if it is at most `at_most` long; otherwise that many bytes off its end.
IdlePiece IdlePages::cut(std::vector<IdlePiece>& from, Bytes at_most) {
  IdlePiece& last = from.back();
  if (last.length <= at_most) {
    const IdlePiece whole = last;
    from.pop_back();
    return whole;
  }
  last.length -= at_most;
  return {last.at + last.length, at_most, last.kind};
}

// Makes the last piece of `from` a crumb if a cut left it too short to be moved.
void IdlePages::sweep_crumb(std::vector<IdlePiece>& from) {
  if (from.empty() || from.back().length >= kLeastMove) return;
  crumbs_.push_back(from.back());
  from.pop_back();
}

std::optional<IdlePiece> IdlePages::take_to_move(PageKind kind, Bytes at_most) {
  if (at_most < kLeastMove) return std::nullopt;
  if (runs_) return cut_run(at_most);
  std::vector<IdlePiece>& from = pieces_of(kind);
  bring_best_to_the_back(from, at_most);
  if (from.empty() || from.back().length < at_most) {
    const Best range = best_range(kind, at_most);
    const Bytes loose = from.empty() ? Bytes{} : from.back().length;
    if (range.length >= kLeastMove && better(range.length, loose, at_most)) {
      take_apart(range.range);
      bring_best_to_the_back(from, at_most);
    }
  }
  if (from.empty()) return std::nullopt;
  const IdlePiece piece = cut(from, at_most);
  sweep_crumb(from);
  bytes_ -= piece.length;
  return piece;
}

Bytes IdlePages::take_unmapped(Bytes at_most) {
  const Bytes taken = std::min(at_most, unmapped_);
  unmapped_ -= taken, bytes_ -= taken;
  return taken;
}

std::optional<IdlePiece> IdlePages::cut_run(Bytes at_most) {
  const std::optional<AddressRange> run = runs_->take_up_to(at_most);
  if (!run) return std::nullopt;
  bytes_ -= run->size;
  return IdlePiece{run->begin, run->size, PageKind::Huge};
}

std::optional<IdlePiece> IdlePages::take_to_drop(Bytes at_most) {
  if (runs_) return cut_run(round_up(at_most, kHugePage));
  while (crumbs_.empty() && small_.empty() && huge_.empty()) {
    if (ranges_.empty()) return std::nullopt;
    take_apart(ranges_.begin());
  }
  std::vector<IdlePiece>& from = !crumbs_.empty() ? crumbs_ : !small_.empty() ? small_ : huge_;
  const IdlePiece piece = cut(from, round_up(at_most, page_size(from.back().kind)));
  if (&from != &crumbs_) sweep_crumb(from);
  bytes_ -= piece.length;
  return piece;
}

}  // namespace ullage::store
