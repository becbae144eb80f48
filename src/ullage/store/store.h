// SPDX-License-Identifier: Apache-2.0
#pragma once

// The core of the pool: places storages, without torch. A storage of 64 KiB or more has an address range of its own for
// life; only the pages mapped there come and go. Pages of dead storages are handed on to new ones. So they are neither
// returned to the system nor zeroed again, and resident bytes follow the peak of live bytes:
//
//   allocate 6 MiB + 80 KiB
//     1. an idle range of just this size?          -> its address, with its pages as they are
//     2. else a vacant address range               |- - - - - -|- |
//     3. idle pages of the same kind, moved in     |#####|##|  |  |
//     4. fresh pages for the rest, if they fit     |#####|##|..|..|  (before that, idle pages may be given back)
//
// Smaller storages stand in slabs. A live range can be vacated: its address stays, its pages become idle. It gets pages
// again in one of two ways. Either pages are staged (filled at an address that nobody knows) and then moved to its own
// address. Or another live range hands its pages over.
//
// On a card (Pages::holds_unmapped()) each mapping costs a call of the driver, and no touch is noticed. So the pages of
// a vacated range are idle without an address, and pages are staged at the range's own address.
//
// Thread-safe by one lock, which is held while pages are moved or filled.

#include "ullage/store/address_space.h"
#include "ullage/store/idle_pages.h"
#include "ullage/store/slabs.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <variant>

namespace ullage::store {

// Says how many bytes the store may hold resident.
class Limit {
 public:
  virtual ~Limit() = default;
  // `resident`: what the store holds now. Called before each growth and more often, with the store's lock held.
  virtual Bytes resident_limit(Bytes resident) = 0;
  // By how many bytes `resident` passes the limit. If the limit is zero because even an empty pool would exceed the
  // budget, adds that excess.
  virtual Bytes missing(Bytes resident) { return saturating_sub(resident, resident_limit(resident)); }
  // Called before a request is refused, without the store's lock. If the limit rests on an estimate, improves it; if
  // others share the memory, has them give way. `needed`: Refusal::needed. False: it did neither.
  virtual bool recount(Bytes /*needed*/) { return false; }
  // Do others grow now that will end, or give memory back of their own accord? A request waits for that.
  virtual bool others_grow() { return false; }
  // lease() is called when a request of so many bytes arrives, before the store asks for the limit. end_lease() is
  // called after the request has taken all, some or none of them. The store's lock is held.
  virtual void lease(Bytes) {}
  virtual void end_lease(Bytes /*leased*/, Bytes /*taken*/) {}
};

class FixedLimit final : public Limit {
 public:
  explicit FixedLimit(Bytes limit) : limit_(limit) {}
  Bytes resident_limit(Bytes) override { return limit_; }

 private:
  Bytes limit_;
};

// Why a request was not served, and the figures of that moment. Nothing was taken and nothing is lost.
struct Refusal {
  enum class Reason {
    OverLimit,     // pages of live storages and the request together would pass the limit
    AddressSpace,  // no gap in the reserved addresses is large enough
    Device,        // the operating system or the card has no more
  };
  Reason reason = Reason::OverLimit;
  Bytes requested;
  Bytes live;
  Bytes resident;
  Bytes limit;   // on resident bytes, when last asked for
  Bytes needed;  // the least limit under which this request would have been served
};

struct StoreCounts {
  Bytes live;  // asked for and not freed
  Bytes live_peak;
  Bytes present;  // of live, what has pages: not vacated, or staged
  Bytes present_peak;
  Bytes wasted_peak;  // most resident bytes that were neither idle nor asked for: ends of last pages and of slabs
  Bytes resident;     // pages held, those of live storages and idle ones
  Bytes resident_peak;
  Bytes idle;     // of resident, pages of no live storage
  Bytes slabs;    // of resident, pages of slabs: they cannot be vacated
  Bytes vacated;  // whole pages of live ranges without settled pages
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t refused = 0;
  Bytes limit;  // on resident bytes, when last asked for
  Bytes moved;  // handed on by moving pages
  Bytes fresh;  // taken from the system
};

class Store final {
 public:
  struct Options {
    Bytes address_space = Bytes{1ull << 40};  // reserved once; costs nothing
    // Each piece is a mapping of the kernel. If there are this many, idle pages are not moved to new storages.
    std::size_t most_pieces = 16384;
  };

  // `pages` and `limit` must outlive the store. If no address space can be had, returns the error of Pages::reserve().
  static Result<std::unique_ptr<Store>> create(Pages& pages, Limit& limit, Options options);
  static Result<std::unique_ptr<Store>> create(Pages& pages, Limit& limit) { return create(pages, limit, Options{}); }

  // Places a storage at a multiple of 64 bytes; of 4096 if `size` is 64 KiB or more; of 2 MiB if its range is that
  // large. Its bytes are undefined. ContractError if `size` is zero.
  std::variant<Address, Refusal> allocate(Bytes size);
  // Frees a storage and returns the bytes that were asked for. ContractError if no live storage begins at `at`.
  // `gives_back`: its pages go to the system, as with give_back().
  Bytes free(Address at, bool gives_back = false);
  // A storage of kLeastRange or more has a range of whole pages for itself, and only such a one can be vacated.
  static constexpr Bytes kLeastRange = Slabs::kBlockLimit;
  // Bytes of the range that a request of kLeastRange or more gets.
  Bytes span(Bytes size) const { return round_up(size, granularity_); }

  // Takes the pages away from a live range, with their contents. The range keeps its address; touching it is a page
  // fault from the first moment on. The pages become idle, or go back to the system if they cannot be moved.
  // ContractError if no live range with pages begins at `at`, or if the kernel does not take the access away.
  void vacate(Address at);
  // Does the same, but the pages go back to the system. This is for pages that a fork shares. If another storage got
  // them, its first write would copy them, and no figure of this process shows such a copy.
  void give_back(Address at);
  // Takes as many writable pages as the vacated range at `at` needs, at an address that nobody else knows, and returns
  // that address. On a card it is `at` itself: the caller has no work use it before settle().
  std::variant<Address, Refusal> stage(Address at);
  // Moves the staged pages to the vacated range, with this access from the first moment on. False: the kernel refused,
  // so the range lacks some or all of its pages, which no caller can repair.
  [[nodiscard]] bool settle(Address at, Address staged, Access access);
  // Gives staged pages up; they become idle.
  void unstage(Address staged);
  // Moves the pages of the live range `from`, with their contents, to the vacated live range `to` of the same size.
  // `to` can be read and written when all pages are there, and not before, so no thread sees part of them. `from` stays
  // live without pages, as if vacated. False: as for settle().
  [[nodiscard]] bool hand_over(Address from, Address to);
  // Sets the access to a live range that has its pages. False: the kernel refused.
  bool protect(Address at, Access access);

  // Asks for the limit. Returns how much more could be placed: the limit less the pages of live storages.
  Bytes room();
  // Asks for the limit. Returns by how much the pages of live storages pass it.
  Bytes excess();
  // Asks for the limit. Returns by how much all resident bytes, idle ones included, pass it (Limit::missing).
  Bytes missing();

  // Does this address lie in the store's reservation?
  bool owns(Address at) const { return all_.contains(at); }

  // See Limit.
  bool recount_limit(Bytes needed) { return limit_.recount(needed); }
  bool others_grow() { return limit_.others_grow(); }

  // Gives all idle pages back to the system. Returns their bytes.
  Bytes drop_idle();

  // Asks for the limit. Gives idle pages back to the system until resident bytes are `headroom` below the limit, as far
  // as there are idle pages. Returns the bytes given back.
  Bytes trim(Bytes headroom = {});

  // Returns every live storage, small ones too, in order of address.
  std::vector<LiveStorage> live() const;

  StoreCounts counts() const;
  // Restarts present_peak and wasted_peak from their present values.
  void restart_present_peak();

  // Hold this across fork(), so that the child's copy is not caught in the middle of a change.
  std::mutex& fork_lock() { return lock_; }

 private:
  Store(Pages& pages, Limit& limit, Options options, AddressRange all);

  struct Live {
    Range range;
    Bytes asked;
  };
  // Pages for a vacated storage, at an address that nobody knows; on a card at the storage's own.
  struct Staged {
    Range range;
    Bytes asked;  // what the storage asked for
  };
  using Placed = std::variant<Range, Refusal>;

  // The part of a new range that gets pages of one kind. Its first `backed` bytes have theirs.
  struct Part {
    Address at;
    Bytes size;
    PageKind kind;
    Bytes backed;
    std::vector<Piece> pieces;

    Bytes missing() const { return size - backed; }
    void add(Bytes length) {
      pieces.push_back({length, kind});
      backed += length;
    }
  };

  void vacate(Address at, bool keeps_pages);
  Placed place(Bytes size, Bytes alignment, Bytes asked, std::optional<Address> fixed = std::nullopt);
  Live& live_at(Address at);
  Staged take_staged(Address at);
  void add_present(Bytes asked);
  Bytes wasted() const;
  Bytes ask_limit();
  Range adopt(Range range);
  bool move_all(Range& from, Address to);
  void move_idle_behind(Part& part);
  void map_idle_behind(Part& part);
  void take_off(Address at, Bytes length);
  bool fill_missing(Part& part);
  void abandon(Part& part);
  void make_way(Bytes fresh, Bytes most);
  void drop(Address at, Bytes length);
  Bytes drop_some_idle(Bytes at_most);
  Bytes drop_idle_down_to(Bytes most);
  void retire(Range range);
  Bytes soft_limit(Bytes asked) const;
  Refusal refuse(Refusal::Reason reason, Bytes asked, Bytes size, Bytes limit);

  Pages& pages_;
  Limit& limit_;
  const Bytes granularity_;
  const Options options_;
  const AddressRange all_;

  mutable std::mutex lock_;
  AddressSpace space_;
  IdlePages idle_;
  Slabs slabs_;
  std::unordered_map<std::uint64_t, Live> live_;      // storages with a range of their own, by address
  std::unordered_map<std::uint64_t, Staged> staged_;  // by address
  StoreCounts counts_;
  std::size_t live_pieces_ = 0;  // of all live ranges, staged ranges and slabs
  bool can_move_ = true;         // false once the kernel could not move pages
};

}  // namespace ullage::store
