// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the ranges of dead storages, with the pages mapped there, until the pages are moved to a new storage or freed.
//
//   whole ranges, longest idle first                 pieces of ranges that were taken apart
//   [huge huge huge|small] [small] [huge|small] ...  huge: [..] [....]   small: [..]   crumbs: [.]
//
// A request of exactly the size of a whole range gets that range at once. For other requests, ranges are taken apart
// and their pieces are moved to other addresses. The best-fitting piece is chosen, because each move costs some 20 us
// whatever its length. In DCGAN-256 that makes 340 moves a step; taking the oldest range apart made 660. If pages are
// to be given back to the system, crumbs go first, then small pieces, then huge ones. Only if there are none of these
// is a whole range taken apart, the one that has been idle longest.
//
// A piece is one mapping of the kernel, because the kernel can only move pages that lie in one mapping. Crumbs are
// pieces shorter than kLeastMove, too small to be worth a mapping; they are only ever given back.
//
// On a card (Join::Yes) each page is a mapping of its own. So neighbouring pages are one run, wherever they came from,
// and a request gets the begin of the best-fitting run. Pages of evicted storages are idle without an address, because
// each mapping costs a call of the driver. A request gets them only if no run is long enough.

#include "ullage/store/address_space.h"
#include "ullage/store/pages.h"

#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ullage::store {

struct Piece {
  Bytes length;
  PageKind kind;
};

// A storage's address range and the pieces mapped there, in order of address: huge ones, then small ones.
struct Range {
  Address at;
  Bytes size;
  std::vector<Piece> pieces;
};

struct IdlePiece {
  Address at;
  Bytes length;
  PageKind kind;
};

// Not thread-safe: the store calls it under its lock.
class IdlePages final {
 public:
  // Smaller pieces are not moved, because the kernel limits mappings (vm.max_map_count, 65,530 by default).
  static constexpr Bytes kLeastMove = 64_KiB;

  // Can pages be cut off and joined with their neighbours? All of them are huge then.
  enum class Join { No, Yes };
  explicit IdlePages(Join join = Join::No) {
    if (join == Join::Yes) runs_.emplace(AddressRange{});
  }

  void add(Range range);
  void add(IdlePiece piece);

  // Pages without an address, with Join::Yes alone.
  void add_unmapped(Bytes size) { unmapped_ += size, bytes_ += size; }
  // Takes `at_most` of them, or all that there are.
  Bytes take_unmapped(Bytes at_most);
  Bytes unmapped() const { return unmapped_; }

  // Takes the most recently added whole range of just this size; with Join::Yes, a part of a run. Nothing if there is
  // none.
  std::optional<Range> take_whole(Bytes size);

  // Takes a piece of this kind, at least kLeastMove and at most `at_most` long; nothing if there is none.
  std::optional<IdlePiece> take_to_move(PageKind kind, Bytes at_most);

  // Takes a piece to give back: at most `at_most` (above zero), rounded up to its page size. Takes crumbs first, then
  // small pieces, huge pieces, and the oldest range. Returns nothing if no pages are idle.
  std::optional<IdlePiece> take_to_drop(Bytes at_most);

  // Of all idle pages, unmapped ones included.
  Bytes bytes() const { return bytes_; }
  std::size_t pieces() const {
    return runs_ ? runs_->gaps() : in_ranges_ + huge_.size() + small_.size() + crumbs_.size();
  }

 private:
  using Ranges = std::list<Range>;

  std::vector<IdlePiece>& pieces_of(PageKind kind) { return kind == PageKind::Huge ? huge_ : small_; }
  struct Best {
    Ranges::iterator range;
    Bytes length;  // of its best piece; zero: there is none
  };
  Best best_range(PageKind kind, Bytes wanted);
  void take_apart(Ranges::iterator whole);
  static void bring_best_to_the_back(std::vector<IdlePiece>& from, Bytes wanted);
  Range remove(Ranges::iterator range);
  static IdlePiece cut(std::vector<IdlePiece>& from, Bytes at_most);
  std::optional<IdlePiece> cut_run(Bytes at_most);
  void sweep_crumb(std::vector<IdlePiece>& from);

  std::optional<AddressSpace> runs_;  // with Join::Yes: all that is idle and mapped; else nothing
  Bytes unmapped_;
  Ranges ranges_;
  std::unordered_map<std::uint64_t, std::deque<Ranges::iterator>> by_size_;  // each oldest first
  std::vector<IdlePiece> huge_, small_, crumbs_;
  Bytes bytes_{};
  std::size_t in_ranges_ = 0;  // number of pieces in whole ranges
};

}  // namespace ullage::store
