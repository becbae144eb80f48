// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/store.h"

#include <algorithm>
#include <utility>

namespace ullage::store {
namespace {

// Resident bytes may pass the peak of live bytes by a 64th of it and kSlack. Before fresh pages would pass that, idle
// pages are given back to the system.
constexpr std::uint64_t kSlackShare = 64;  // 1/64, below 2 %
constexpr Bytes kSlack = 256_KiB;

// The alignment of a range; huge pages stand at multiples of their size.
Bytes alignment_of(Bytes span) { return span >= kHugePage ? kHugePage : kSmallPage; }

// Tells the limit how many bytes a request may take. Lives from before the request asks for the limit until it has its
// pages.
struct Lease {
  Lease(Limit& from, Bytes bytes) : limit(from), leased(bytes) { limit.lease(leased); }
  ~Lease() { limit.end_lease(leased, taken); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Limit& limit;
  const Bytes leased;
  Bytes taken;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::create(Pages& pages, Limit& limit, Options options) {
  ULLAGE_TRY_VALUE(AddressRange all, pages.reserve(options.address_space));
  return std::unique_ptr<Store>(new Store(pages, limit, options, all));
}

Store::Store(Pages& pages, Limit& limit, Options options, AddressRange all)
    : pages_(pages),
      limit_(limit),
      granularity_(pages.granularity()),
      options_(options),
      all_(all),
      space_(all),
      idle_(granularity_ == kHugePage ? IdlePages::Join::Yes : IdlePages::Join::No) {}

std::variant<Address, Refusal> Store::allocate(Bytes size) {
  ULLAGE_CHECK(size > Bytes{}, "a request of no bytes");
  const std::lock_guard guard(lock_);
  const bool small = size < Slabs::kBlockLimit;
  std::optional<Address> at = small ? slabs_.take(size) : std::nullopt;
  if (!at) {
    if (size > all_.size) return refuse(Refusal::Reason::AddressSpace, size, size, ask_limit());
    Placed placed = small ? place(Slabs::kSlab, Slabs::kSlab, size) : place(span(size), alignment_of(span(size)), size);
    if (auto* refusal = std::get_if<Refusal>(&placed)) return *refusal;
    Range& range = std::get<Range>(placed);
    if (small) {
      counts_.slabs += range.size;
      slabs_.add_slab(std::move(range), size);
      at = slabs_.take(size);
    } else {
      at = range.at;
      live_.emplace(at->value, Live{std::move(range), size});
    }
  }
  ++counts_.allocations;
  counts_.live += size;
  counts_.live_peak = std::max(counts_.live_peak, counts_.live);
  add_present(size);
  return *at;
}

Bytes Store::free(Address at, bool gives_back) {
  const std::lock_guard guard(lock_);
  Bytes asked{};
  if (slabs_.owns(at)) {
    Slabs::Freed freed = slabs_.give(at);
    asked = freed.size;
    counts_.present -= asked;
    if (freed.emptied) {
      counts_.slabs -= freed.emptied->size;
      retire(std::move(*freed.emptied));
    }
  } else {
    Live& live = live_at(at);
    asked = live.asked;
    if (live.range.pieces.empty()) {
      if (!staged_.contains(at.value)) space_.give({at, live.range.size});  // else unstage() does
      counts_.vacated -= live.range.size;
    } else {
      counts_.present -= asked;
      if (gives_back) {
        live_pieces_ -= live.range.pieces.size();
        drop(at, live.range.size);
      } else {
        retire(std::move(live.range));
      }
    }
    live_.erase(at.value);
  }
  counts_.live -= asked;
  ++counts_.frees;
  return asked;
}

Store::Live& Store::live_at(Address at) {
  const auto found = live_.find(at.value);
  ULLAGE_CHECK(found != live_.end(), "freed twice, or never allocated");
  return found->second;
}

Store::Staged Store::take_staged(Address at) {
  const auto found = staged_.find(at.value);
  ULLAGE_CHECK(found != staged_.end(), "not staged");
  Staged staged = std::move(found->second);
  staged_.erase(found);
  return staged;
}

void Store::add_present(Bytes asked) {
  counts_.present += asked;
  counts_.present_peak = std::max(counts_.present_peak, counts_.present);
  counts_.wasted_peak = std::max(counts_.wasted_peak, wasted());
}

Bytes Store::wasted() const { return saturating_sub(counts_.resident - idle_.bytes(), counts_.present); }

void Store::restart_present_peak() {
  const std::lock_guard guard(lock_);
  counts_.present_peak = counts_.present;
  counts_.wasted_peak = wasted();
}

void Store::vacate(Address at) { vacate(at, /*keeps_pages=*/true); }

void Store::give_back(Address at) { vacate(at, /*keeps_pages=*/false); }

void Store::vacate(Address at, bool keeps_pages) {
  const std::lock_guard guard(lock_);
  Live& live = live_at(at);
  Range& range = live.range;
  ULLAGE_CHECK(!range.pieces.empty(), "vacated already");
  // All access goes before the first page does. Otherwise another thread could touch an address whose page has gone
  // already, and the kernel would give it a page of zeros.
  ULLAGE_CHECK(pages_.protect(at, range.size, Access::None),
               "the kernel protects no more pages (see vm.max_map_count)");
  counts_.vacated += range.size;
  counts_.present -= live.asked;
  live_pieces_ -= range.pieces.size();
  const bool moves = can_move_ && keeps_pages;
  if (moves && pages_.holds_unmapped()) {
    range.pieces.clear();
    return take_off(at, range.size);
  }
  const std::optional<Address> to = moves ? space_.take(range.size, alignment_of(range.size)) : std::nullopt;
  Range gone{to.value_or(at), range.size, {}};
  std::swap(gone.pieces, range.pieces);
  if (to && move_all(gone, at) && pages_.protect(*to, gone.size, Access::ReadWrite)) {
    idle_.add(std::move(gone));
    return;
  }
  // None are kept, or not all could be moved. Gives the pages back to the system, wherever they stand now.
  pages_.drop(at, gone.size);
  if (to) {
    pages_.drop(*to, gone.size);
    space_.give({*to, gone.size});
  }
  counts_.resident -= gone.size;
}

// Takes the pages off a range that keeps its addresses. They are idle then, or the system's if it does not unmap them.
void Store::take_off(Address at, Bytes length) {
  if (length == Bytes{}) return;
  if (can_move_ && pages_.unmap(at, length)) return idle_.add_unmapped(length);
  pages_.drop(at, length);
  counts_.resident -= length;
}

// Moves the pages of `range`, which are at the addresses from `from` on, to the range's own addresses, piece by piece.
bool Store::move_all(Range& range, Address from) {
  Bytes done{};
  for (const Piece& piece : range.pieces) {
    if (!pages_.move(from + done, range.at + done, piece.length)) {
      can_move_ = false;
      return false;
    }
    done += piece.length;
  }
  return true;
}

std::variant<Address, Refusal> Store::stage(Address at) {
  const std::lock_guard guard(lock_);
  const Live& live = live_at(at);
  const Bytes size = live.range.size;
  const std::optional<Address> fixed = pages_.holds_unmapped() ? std::optional(at) : std::nullopt;
  Placed placed = place(size, alignment_of(size), size, fixed);
  if (auto* refusal = std::get_if<Refusal>(&placed)) return *refusal;
  Range& range = std::get<Range>(placed);
  const Address staged = range.at;
  staged_.emplace(staged.value, Staged{std::move(range), live.asked});
  add_present(live.asked);
  return staged;
}

bool Store::settle(Address at, Address staged, Access access) {
  const std::lock_guard guard(lock_);
  Range& range = live_at(at).range;
  Range from = take_staged(staged).range;
  ULLAGE_CHECK(range.pieces.empty() && range.size == from.size, "not vacated, or staged for another");
  if (!pages_.protect(staged, from.size, access)) return false;
  std::swap(range.pieces, from.pieces);
  counts_.vacated -= range.size;
  if (staged == at) return true;
  if (!move_all(range, staged)) return false;
  space_.give({staged, range.size});
  return true;
}

void Store::unstage(Address staged) {
  const std::lock_guard guard(lock_);
  Staged gone = take_staged(staged);
  counts_.present -= gone.asked;
  if (!live_.contains(staged.value)) return retire(std::move(gone.range));
  live_pieces_ -= gone.range.pieces.size();
  take_off(staged, gone.range.size);
}

bool Store::hand_over(Address from, Address to) {
  const std::lock_guard guard(lock_);
  Live& giver = live_at(from);
  Live& taker = live_at(to);
  ULLAGE_CHECK(!giver.range.pieces.empty() && taker.range.pieces.empty(), "nothing to hand over, or not vacated");
  ULLAGE_CHECK(giver.asked == taker.asked, "handed over to a storage of another size");
  // The pages have no access on the way. So `from` shows no zeros after they have gone, and `to` shows nothing before
  // all have come.
  if (!pages_.protect(from, giver.range.size, Access::None)) return false;
  std::swap(taker.range.pieces, giver.range.pieces);
  return move_all(taker.range, from) && pages_.protect(to, taker.range.size, Access::ReadWrite);
}

bool Store::protect(Address at, Access access) {
  const std::lock_guard guard(lock_);
  return pages_.protect(at, live_at(at).range.size, access);
}

Bytes Store::ask_limit() { return counts_.limit = limit_.resident_limit(counts_.resident); }

Bytes Store::room() {
  const std::lock_guard guard(lock_);
  return saturating_sub(ask_limit(), counts_.resident - idle_.bytes());
}

Bytes Store::excess() {
  const std::lock_guard guard(lock_);
  return saturating_sub(counts_.resident - idle_.bytes(), ask_limit());
}

Bytes Store::missing() {
  const std::lock_guard guard(lock_);
  return limit_.missing(counts_.resident);
}

// Returns a range of `size` with pages mapped at all of it. `asked`: how much of it the caller wants to use. `fixed`:
// the addresses, which are taken already and stay so.
Store::Placed Store::place(Bytes size, Bytes alignment, Bytes asked, std::optional<Address> fixed) {
  if (std::optional<Range> whole = fixed ? std::nullopt : idle_.take_whole(size)) {
    if (whole->at.value % alignment.count == 0) return adopt(std::move(*whole));
    idle_.add(std::move(*whole));
  }
  Lease lease(limit_, size);
  const Bytes limit = ask_limit();
  if (counts_.resident - idle_.bytes() + size > limit) return refuse(Refusal::Reason::OverLimit, asked, size, limit);
  const Bytes before = counts_.fresh;
  const std::optional<Address> at = fixed ? fixed : space_.take(size, alignment);
  if (!at) return refuse(Refusal::Reason::AddressSpace, asked, size, limit);

  const Bytes huge = round_down(size, kHugePage);
  std::array<Part, 2> parts = {Part{*at, huge, PageKind::Huge, {}, {}},
                               Part{*at + huge, size - huge, PageKind::Small, {}, {}}};
  for (Part& part : parts) move_idle_behind(part);
  make_way(parts[0].missing() + parts[1].missing(), std::min(limit, soft_limit(asked)));
  if (!fill_missing(parts[0]) || !fill_missing(parts[1])) {
    for (Part& part : parts) fixed ? take_off(part.at, part.backed) : abandon(part);
    return refuse(Refusal::Reason::Device, asked, size, limit);
  }
  lease.taken = counts_.fresh - before;
  Range range{*at, size, std::move(parts[0].pieces)};
  range.pieces.insert(range.pieces.end(), parts[1].pieces.begin(), parts[1].pieces.end());
  return adopt(std::move(range));
}

Range Store::adopt(Range range) {
  live_pieces_ += range.pieces.size();
  return range;
}

void Store::move_idle_behind(Part& part) {
  if (pages_.holds_unmapped()) return map_idle_behind(part);
  while (can_move_ && live_pieces_ + idle_.pieces() < options_.most_pieces) {
    const std::optional<IdlePiece> piece = idle_.take_to_move(part.kind, part.missing());
    if (!piece) return;
    if (!pages_.move(piece->at, part.at + part.backed, piece->length)) {
      can_move_ = false;  // an old kernel, or too many mappings: from now on pages are given back and taken anew
      idle_.add(*piece);
      return;
    }
    space_.give({piece->at, piece->length});
    part.add(piece->length);
    counts_.moved += piece->length;
  }
}

// Maps idle pages at the part in one go: first unmapped ones, then such as are mapped elsewhere.
void Store::map_idle_behind(Part& part) {
  while (can_move_ && idle_.unmapped() < part.missing()) {
    const std::optional<IdlePiece> piece = idle_.take_to_move(part.kind, part.missing() - idle_.unmapped());
    if (!piece) break;
    if (!pages_.unmap(piece->at, piece->length)) {
      can_move_ = false;
      idle_.add(*piece);
      break;
    }
    space_.give({piece->at, piece->length});
    idle_.add_unmapped(piece->length);
  }
  const Bytes taken = idle_.take_unmapped(part.missing());
  if (taken == Bytes{}) return;
  if (!pages_.remap(part.at + part.backed, taken)) return idle_.add_unmapped(taken);
  part.add(taken);
  counts_.moved += taken;
}

bool Store::fill_missing(Part& part) {
  const Bytes fresh = part.missing();
  if (fresh == Bytes{}) return true;
  if (!pages_.fill(part.at + part.backed, fresh, part.kind)) {
    // The system may have less than the limit allows. Gives it all idle pages and tries again.
    drop_idle_down_to({});
    if (!pages_.fill(part.at + part.backed, fresh, part.kind)) return false;
  }
  part.add(fresh);
  counts_.fresh += fresh;
  counts_.resident += fresh;
  counts_.resident_peak = std::max(counts_.resident_peak, counts_.resident);
  return true;
}

// Undoes a part that was not completed. Its pages become idle pages at the addresses where they are now; its other
// addresses become vacant.
void Store::abandon(Part& part) {
  if (part.missing() > Bytes{}) space_.give({part.at + part.backed, part.missing()});
  for (const Piece& piece : part.pieces) {
    idle_.add(IdlePiece{part.at, piece.length, piece.kind});
    part.at = part.at + piece.length;
  }
}

// Gives up idle pages until `fresh` more bytes stay within `most`, or none are idle.
void Store::make_way(Bytes fresh, Bytes most) {
  while (fresh > Bytes{} && counts_.resident + fresh > most) {
    if (drop_some_idle(counts_.resident + fresh - most) == Bytes{}) return;
  }
}

// Gives idle pages back: at most `at_most`, rounded up to whole pages, and often less. Returns nothing only if no pages
// are idle.
Bytes Store::drop_some_idle(Bytes at_most) {
  if (const Bytes unmapped = idle_.take_unmapped(round_up(at_most, granularity_)); unmapped > Bytes{}) {
    pages_.drop_unmapped(unmapped);
    counts_.resident -= unmapped;
    return unmapped;
  }
  const std::optional<IdlePiece> piece = idle_.take_to_drop(at_most);
  if (!piece) return {};
  drop(piece->at, piece->length);
  return piece->length;
}

void Store::drop(Address at, Bytes length) {
  pages_.drop(at, length);
  space_.give({at, length});
  counts_.resident -= length;
}

void Store::retire(Range range) {
  live_pieces_ -= range.pieces.size();
  idle_.add(std::move(range));
}

Bytes Store::soft_limit(Bytes asked) const {
  const Bytes live = std::max(counts_.live_peak, counts_.live + asked);
  return live + live / kSlackShare + kSlack;
}

Refusal Store::refuse(Refusal::Reason reason, Bytes asked, Bytes size, Bytes limit) {
  ++counts_.refused;
  return {reason, asked, counts_.live, counts_.resident, limit, counts_.resident - idle_.bytes() + size};
}

Bytes Store::drop_idle() {
  const std::lock_guard guard(lock_);
  return drop_idle_down_to({});
}

Bytes Store::trim(Bytes headroom) {
  const std::lock_guard guard(lock_);
  return drop_idle_down_to(saturating_sub(ask_limit(), headroom));
}

// Gives idle pages back until resident bytes are within `most`, or none are idle. Returns the bytes given back.
Bytes Store::drop_idle_down_to(Bytes most) {
  const Bytes before = counts_.resident;
  while (counts_.resident > most && drop_some_idle(counts_.resident - most) > Bytes{}) {
  }
  return before - counts_.resident;
}

std::vector<LiveStorage> Store::live() const {
  std::vector<LiveStorage> all;
  {
    const std::lock_guard lock(lock_);
    for (const auto& [at, storage] : live_) all.push_back({Address{at}, storage.asked});
    slabs_.list(all);
  }
  std::ranges::sort(all, {}, &LiveStorage::at);
  return all;
}

StoreCounts Store::counts() const {
  const std::lock_guard guard(lock_);
  StoreCounts counts = counts_;
  counts.idle = idle_.bytes();
  return counts;
}

}  // namespace ullage::store
