// SPDX-License-Identifier: Apache-2.0
// The pager's part for mapped files (file_pages.h): makes room before an op reads pages that are not in memory, and
// lets pages go that no op in flight uses, before it evicts anything.
//
// A file is counted in pieces of kPiece and not by tensor, because its tensors share pages. A touch also maps the pages
// around it, in an aligned range of 64 KiB. Pieces are aligned to a multiple of that, so one touch stays in one piece.
#include "ullage/store/pager_core.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ullage::store {
namespace {

constexpr Bytes kPiece = 1_MiB;
constexpr Bytes kWorthCounting = 16_MiB;  // counting 512 MiB of mappings takes some milliseconds

Address piece_of(Address at) { return {round_down(Bytes{at.value}, kPiece).count}; }

// Returns the pieces in which a range lies, as one range.
AddressRange pieces_around(Address at, Bytes size) {
  const Address begin = piece_of(at);
  return {begin, round_up(at + size - begin, kPiece)};
}

}  // namespace

bool PagerCore::holds_file(Address at) const { return settings_.files != nullptr && settings_.files->holds(at); }

void PagerCore::tell_of_files(Bytes found) const {
  if (settings_.in_files) settings_.in_files(files_there_, files_coming_, files_own_, found);
}

template <class F>
void PagerCore::each_piece(AddressRange pieces, const F& f) {
  auto it = files_.lower_bound(pieces.begin);
  while (it != files_.end() && it->first < pieces.end()) {
    auto& [at, piece] = *it++;
    f(at, piece);
  }
}

// Pins the pieces of an input of the op that begins, and adds to files_coming_ how much of it may still be read in.
void PagerCore::hold_file(const OpInput& input) {
  ThreadOps& ops = ops_here();
  const AddressRange pieces = pieces_around(input.storage, input.size);
  const Address first{round_down(Bytes{input.storage.value}, kSmallPage).count};
  const AddressRange read = {first, round_up(input.storage + input.size - first, kSmallPage)};
  Bytes missing, own;
  bool known = true;  // each piece is in memory as a whole, or was let go as a whole: the kernel need not be asked
  for (Address at = pieces.begin; at < pieces.end(); at = at + kPiece) {
    FilePiece& piece = files_[at];
    ++piece.pins;
    const bool there = piece.there == kPiece, gone = piece.was_let_go && piece.there == Bytes{};
    known &= there || gone;
    const Bytes here = std::min(at + kPiece, read.end()) - std::max(at, read.begin);
    if (gone) missing += here;
    if (piece.own() == kPiece) own += here;  // counted as the program's own, in use or not
  }
  if (!known) missing = saturating_sub(read.size, settings_.files->count(read).there);
  const Bytes comes = std::min(missing, input.at_most.value_or(missing));
  ops.files.push_back({pieces, input.written});
  Frame& frame = ops.frames.back();
  const Bytes in_use = input.at_most ? comes : read.size - own;
  frame.files_coming += comes;
  frame.files_in_use += in_use;
  if (input.slice) frame.sliceable += saturating_sub(in_use, *input.slice);
  frame.reads_part_of_a_file |= input.at_most.has_value();
  files_coming_ += comes;
  files_in_use_ += in_use;
}

// Call it when the op ends: measures what it read in and unpins its pieces. `self`: its id in the history, if any.
void PagerCore::release_files(const Frame& frame, std::optional<OpId> self) {
  ThreadOps& ops = ops_here();
  const Bytes before = files_there_ + files_own_;
  for (std::size_t i = frame.first_file; i < ops.files.size(); ++i) {
    const HeldFile& held = ops.files[i];
    measure(held);
    std::optional<UseId> use;
    each_piece(held.pieces, [&](Address, FilePiece& piece) {
      if (piece.pins > 0) --piece.pins;
      if (!self) return;
      if (!use) use = history_.add_use(piece.last_use);
      piece.last_use = *use;
      piece.used_at = *self;
    });
  }
  ops.files.resize(frame.first_file);
  files_coming_ -= frame.files_coming;
  files_in_use_ -= frame.files_in_use;
  tell_of_files(saturating_sub(files_there_ + files_own_, before + frame.files_coming));
}

void PagerCore::measure(const HeldFile& held) {
  each_piece(held.pieces, [&](Address at, FilePiece& piece) {
    if (piece.there == kPiece && !held.written) return;  // all of it is in memory
    note(piece, settings_.files->count({at, kPiece}));
  });
}

void PagerCore::note(FilePiece& piece, const FilePages::Count& now) {
  files_there_ += now.of_file;
  files_there_ -= piece.of_file;
  files_own_ -= piece.own();
  piece.there = now.there;
  piece.was_let_go &= now.there == Bytes{};
  piece.of_file = now.of_file;
  files_own_ += piece.own();
}

// A program may read its files outside ops, for example to save them. That shows only as growth of the outside, of
// which `headroom` is a multiple (trim()). If that may not fit, and pages of files came since the last time, counts
// what is in memory of all mappings, and lets go of as much as lacks.
void PagerCore::let_go_of_unforeseen_reads(Bytes headroom) {
  if (settings_.files == nullptr || headroom < kWorthCounting) return;
  if (settings_.files->mapped() <= files_there_ + files_own_) return;
  const auto lacking = [&] {
    static_cast<void>(store_.excess());  // asks for the limit anew
    const StoreCounts counts = store_.counts();
    return saturating_sub(counts.resident - counts.idle + headroom, counts.limit);
  };
  if (lacking() == Bytes{}) return;
  const Bytes there = settings_.files->all_there();
  files_seen_ = std::min(files_seen_, there);
  if (there < files_seen_ + kPiece) return;
  const Bytes before = files_there_ + files_own_;
  for (const AddressRange& mapping : settings_.files->mappings()) {
    const AddressRange pieces = pieces_around(mapping.begin, mapping.size);
    for (Address at = pieces.begin; at < pieces.end(); at = at + kPiece) {
      const auto known = files_.find(at);
      // What an op in flight reads is in files_coming_ until the op ends.
      if (known != files_.end() && (known->second.pins > 0 || known->second.there == kPiece)) continue;
      const FilePages::Count now = settings_.files->count({at, kPiece});
      if (now.there > Bytes{} || known != files_.end()) note(files_[at], now);
    }
  }
  tell_of_files(saturating_sub(files_there_ + files_own_, before));
  under_pressure_.store(true);
  let_files_go(lacking());
  files_seen_ = settings_.files->all_there();
}

// Makes room for the pages that the op which begins will read in. Returns why there is none. If the op may read only a
// part of an input (OpInput::at_most), lack of room is no reason to refuse it, because it may need less.
std::optional<Shortage> PagerCore::make_room_for_files(Lock& lock) {
  const Frame frame = ops_here().frames.back();
  tell_of_files();
  Tried tried;
  tried.is_pinned = true;  // files_in_use_ has the request's bytes already
  for (;;) {
    const Bytes missing = store_.missing();
    if (missing == Bytes{}) return std::nullopt;
    under_pressure_.store(true);
    if (store_.trim() > Bytes{}) continue;
    const StoreCounts counts = store_.counts();
    const Refusal refusal{Refusal::Reason::OverLimit, frame.files_coming, counts.live, counts.resident, counts.limit,
                          counts.limit + missing};
    if (std::optional<Shortage> none = make_room_or_recount(lock, refusal, For::Input, tried)) {
      return frame.reads_part_of_a_file ? std::nullopt : none;
    }
  }
}

// Lets go of pieces that no op in flight uses until at least `wanted` bytes are gone, or no such piece is left. The
// piece whose next use is furthest away goes first. Returns how many bytes went.
Bytes PagerCore::let_files_go(Bytes wanted) {
  if (files_there_ == Bytes{}) return {};
  std::vector<std::pair<std::uint64_t, Address>> order;
  for (const auto& [at, piece] : files_) {
    if (piece.pins == 0 && piece.of_file > Bytes{} && !piece.stays) order.emplace_back(distance(piece, history_), at);
  }
  std::ranges::sort(order, std::greater());
  Bytes gone;
  for (const auto& [ops, at] : order) {
    FilePiece& piece = files_[at];
    const Bytes left = std::min(settings_.files->let_go({at, kPiece}), piece.of_file);
    const Bytes went = piece.of_file - left;
    piece.stays = left > Bytes{};
    piece.was_let_go = true;
    piece.of_file = left;
    piece.there = saturating_sub(piece.there, went);
    files_there_ -= went;
    gone += went;
    if (gone >= wanted) break;
  }
  counts_.files_let_go += gone;
  tell_of_files();
  return gone;
}

// For a child made by fork. The kernel gives it none of a file's pages, unless some of the mapping was written. Then
// these count as outside until an op of the child uses them.
void PagerCore::forget_files() {
  files_.clear();
  files_there_ = files_own_ = files_seen_ = {};
  tell_of_files();
}

Bytes PagerCore::files_to_let_go() const { return saturating_sub(files_there_, files_in_use_); }

void PagerCore::file_unmapped(AddressRange range) {
  const Lock lock(lock_);
  const AddressRange pieces = pieces_around(range.begin, range.size);
  each_piece(pieces, [this](Address at, const FilePiece& piece) {
    files_there_ -= piece.of_file;
    files_own_ -= piece.own();
    files_.erase(at);
  });
  tell_of_files();
}

}  // namespace ullage::store
