// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where bytes are placed: the torch-free heart of the pool. A storage of 64 KiB or more has an address range of its own
// for life; what comes and goes are the pages behind it. Pages of dead storages are handed on to new ones, so they are
// neither returned to the system nor zeroed again, and resident bytes follow the peak of live bytes:
//
//   allocate 6 MiB + 80 KiB                     idle: a dead range of the same size?  -> its address, pages as they are
//     1. else a vacant address range                  |- - - - - -|- |
//     2. idle pages of the same kind, moved           |#####|##       |
//     3. fresh pages for the rest, if they fit        |#####|##|..|..|   (before that, idle pages of the other kind go)
//
// Small blocks stand in slabs. A live range can be vacated: its address stays, its pages go to the idle ones. It gets
// pages again by staging: they are filled at another address, where nobody looks, and then moved behind its own; or
// those of another live range are handed over to it.
//
// The store is thread-safe: one lock, held while pages are moved or filled.

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

// How many bytes the store may hold resident. Asked before each growth, with the store's lock held.
class Limit {
 public:
  virtual ~Limit() = default;
  virtual Bytes resident_limit(Bytes resident) = 0;
  // By how many bytes `resident` passes the limit. Where even a limit of zero would be passed, what is lacking there too.
  virtual Bytes missing(Bytes resident) { return saturating_sub(resident, resident_limit(resident)); }
  // Asked before a request is refused: the limit rests on an estimate, and is now known better. False: it is not.
  virtual bool recount() { return false; }
  // Before the limit is asked for `bytes` more, and after they were taken, or some of them, or none.
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
    OverLimit,     // live + requested would pass the limit
    AddressSpace,  // no gap in the reserved addresses is large enough
    Device,        // the operating system has no more
  };
  Reason reason = Reason::OverLimit;
  Bytes requested;
  Bytes live;
  Bytes resident;
  Bytes limit;   // of resident bytes, when asked last
  Bytes needed;  // the least limit under which this request would have been served
};

struct StoreCounts {
  Bytes live;  // asked for and not given back
  Bytes live_peak;
  Bytes present;  // of live, with bytes behind it: not vacated, or staged for
  Bytes present_peak;
  Bytes wasted_peak;  // of resident bytes that are neither idle nor asked for: ends of pages, and of slabs
  Bytes resident;     // pages held, behind live storages and idle ones
  Bytes resident_peak;
  Bytes idle;     // of resident, behind no live storage
  Bytes slabs;    // of resident, behind small blocks: they cannot be vacated
  Bytes vacated;  // of live ranges, whole pages, with nothing behind them now
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t refused = 0;
  Bytes limit;  // of resident bytes, when asked last
  Bytes moved;  // handed on by moving pages
  Bytes fresh;  // taken from the system
};

class Store final {
 public:
  struct Options {
    Bytes address_space = Bytes{1ull << 40};  // reserved once; costs nothing
    std::size_t most_pieces = 16384;          // mappings that the kernel is asked for at most, by moving pages
  };

  // `pages` and `limit` must outlive the store. BadArgument or System when no address space can be had.
  static Result<std::unique_ptr<Store>> create(Pages& pages, Limit& limit, Options options);
  static Result<std::unique_ptr<Store>> create(Pages& pages, Limit& limit) { return create(pages, limit, Options{}); }

  // Bytes at a multiple of 64, or of 4096 from 64 KiB on. The content is what was there before. `size` is above zero.
  std::variant<Address, Refusal> allocate(Bytes size);
  // Ends a storage and returns the bytes that were asked for. ContractError where no live storage begins at `at`.
  Bytes free(Address at);
  // A storage of kLeastRange or more has a range of whole pages for itself, and only such a one can be vacated.
  static constexpr Bytes kLeastRange = Slabs::kBlockLimit;
  // Bytes of the range of a request of that size.
  Bytes span(Bytes size) const { return round_up(size, granularity_); }

  // Takes the pages from behind a live range, contents and all; the address stays its own, and touching it is a fault
  // from the first moment on.
  void vacate(Address at);
  // As many pages as a vacated range needs, writable, at an address that nobody else knows.
  std::variant<Address, Refusal> stage(Address at);
  // Moves the staged pages behind the vacated range, with this access from the first moment on. False: the kernel
  // could not move them all; the range is then partly backed, which no caller can mend.
  [[nodiscard]] bool settle(Address at, Address staged, Access access);
  // Gives staged pages up.
  void unstage(Address staged);
  // The pages behind the live range `from`, contents and all, go behind the vacated live range `to` of the same size.
  // No thread sees half of them: `to` can be touched when all of it is there, to read and to write. `from` stays live
  // without pages, as if vacated. False: as settle().
  [[nodiscard]] bool hand_over(Address from, Address to);
  // What may be done with a live range that has its pages. False: the kernel refused.
  bool protect(Address at, Access access);

  // How much more could be placed now: the limit less what stands behind live storages.
  Bytes room();
  // The other way round: by how much what stands behind live storages passes the limit.
  Bytes excess();
  // The same for all resident bytes, idle ones included: Limit::missing().
  Bytes missing();

  // Does this address lie in the store's reservation?
  bool owns(Address at) const { return all_.contains(at); }

  // See Limit::recount().
  bool recount_limit() { return limit_.recount(); }

  // Gives all idle pages back to the system. Returns their bytes.
  Bytes drop_idle();

  // Asks for the limit and gives idle pages back to the system until resident bytes stay below it by `headroom`, as far
  // as there are any. Returns the bytes given back.
  Bytes trim(Bytes headroom = {});

  // Every live storage, small ones too, by address.
  std::vector<LiveStorage> live() const;

  StoreCounts counts() const;
  // present_peak and wasted_peak are from now on the most since now.
  void restart_present_peak();

  // Held across fork(), so that the child's copy is not caught half done.
  std::mutex& fork_lock() { return lock_; }

 private:
  Store(Pages& pages, Limit& limit, Options options, AddressRange all);

  struct Live {
    Range range;
    Bytes asked;
  };
  // Pages at an address that nobody knows, for a vacated storage.
  struct Staged {
    Range range;
    Bytes asked;  // for the storage
  };
  using Placed = std::variant<Range, Refusal>;

  // A stretch of a new range that takes pages of one kind, backed from its beginning on.
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

  Placed place(Bytes size, Bytes alignment, Bytes asked);
  Live& live_at(Address at);
  Staged take_staged(Address at);
  void add_present(Bytes asked);
  Bytes wasted() const;
  Bytes ask_limit();
  Range adopt(Range range);
  bool move_all(Range& from, Address to);
  void move_idle_behind(Part& part);
  bool fill_missing(Part& part);
  void abandon(Part& part);
  void make_way(Bytes fresh, Bytes most);
  void drop(const IdlePiece& piece);
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
  std::size_t live_pieces_ = 0;  // of all live ranges and slabs
  bool can_move_ = true;         // false once the kernel could not move pages
};

}  // namespace ullage::store
