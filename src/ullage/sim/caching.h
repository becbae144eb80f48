// SPDX-License-Identifier: Apache-2.0
#pragma once

// PyTorch's native CUDA caching allocator as a model: where each request is placed, which segments are taken from the
// device and when they are given back. One device, the default pools, any number of streams; no memory, no torch, no
// threads. Not modelled: private pools (CUDA graphs), peers, sharing with other processes.
//
//   segment  |####|##|--------|#|---|     blocks: # live, - free; a request takes the front of the free block that fits
//                     ^ split              best, and the rest stays; a freed block merges with free neighbours
//
// Source: c10/cuda/CUDACachingAllocator.cpp of torch 2.11 to 2.15.

#include "ullage/base/bytes.h"
#include "ullage/sim/allocator_event.h"
#include "ullage/sim/caching_settings.h"
#include "ullage/sim/device.h"
#include "ullage/sim/free_blocks.h"
#include "ullage/sim/pending_frees.h"
#include "ullage/trace/recording/recording.h"

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ullage::sim {

using trace::StreamId;

struct Allocation {
  BlockId block;
  Address address;
};

// Why a request was not served, and the figures of that moment. Cached segments were given back before; nothing else
// has changed.
struct Shortage {
  enum class Reason {
    TooLarge,    // a request of 2^60 bytes or more; not even tried
    OverLimit,   // reserved + segment would pass the memory fraction
    DeviceFull,  // the device refused
  };
  Reason reason = Reason::DeviceFull;
  Bytes requested;
  Bytes rounded;  // the block that was looked for
  Bytes segment;  // the segment that would have held it
  Bytes allocated;
  Bytes reserved;
  Bytes device_free;
};

struct CachingStats {
  Bytes allocated;  // blocks held by callers, rounded up, until their free was asked for
  Bytes allocated_peak;
  Bytes reserved;  // taken from the device
  Bytes reserved_peak;
  std::uint64_t segments = 0;        // taken by cudaMalloc and not given back; expandable ones do not count
  std::uint64_t segments_taken = 0;  // since the beginning; maps of expandable ones count, one each
  std::uint64_t retries = 0;
  std::uint64_t out_of_memory = 0;
};

class CachingAllocator final {
 public:
  // `device` and `listener` (which may be null) must outlive the allocator. An event of a stream (record_stream) is
  // done when it was asked for the `event_queries`-th time; 0 and 1: at the first.
  CachingAllocator(const CachingSettings& settings, Device& device, Listener* listener = nullptr,
                   unsigned event_queries = 0);

  // c10's id of a stream, which decides the order in which frees of several streams complete; unless told, the
  // stream's own value.
  void name_stream(StreamId stream, std::uint64_t c10_id);

  // `size` is above zero.
  std::variant<Allocation, Shortage> allocate(Bytes size, StreamId stream);
  // The block's owner gives it back. It is free at once, or when the other streams that used it are done with it.
  // ContractError where the block is not live.
  void free(BlockId block);
  // Another stream than the block's own uses it too.
  void record_stream(BlockId block, StreamId stream);
  void empty_cache();

  // For histories in which a block's end is told in two parts: after request_free() it is held until complete_free().
  void request_free(BlockId block);
  void complete_free(BlockId block);

  // What was there before the first event. The pieces fill the segment without a gap, by address; an expandable
  // segment is the whole reserved range, and its unmapped pieces are said. Segments are seeded oldest first, before any
  // request. Returns the ids of the pieces that are Live, in their order. Not counted as events.
  struct SeedPiece {
    enum class State { Live, Free, Unmapped };
    Bytes size;
    Bytes requested;
    State state = State::Free;
  };
  struct SeedSegment {
    Address address;
    StreamId stream;
    bool small = false;
    bool expandable = false;
    std::vector<SeedPiece> pieces;
  };
  std::vector<BlockId> seed(const SeedSegment& segment);

  const CachingStats& stats() const { return stats_; }
  // All blocks with bytes behind them, by address: for checks and for pictures. A whole segment, or of an expandable
  // one a stretch of mapped pages, begins where `first_of_segment`.
  struct BlockView {
    Address address;
    Bytes size;
    Bytes requested;  // of a free block: zero
    StreamId stream;
    bool live = false;
    bool pending = false;  // its free was asked for
    bool first_of_segment = false;
    bool small = false;
    bool expandable = false;
  };
  std::vector<BlockView> blocks() const;

 private:
  static constexpr BlockIndex kNone = UINT32_MAX;

  struct Block {
    Address address{};
    Bytes size{};  // zero: this place in blocks_ is unused
    Bytes requested{};
    std::uint64_t born = 0;           // order among free blocks of one size, see Ties
    std::uint64_t searches_then = 0;  // searches of its pool when it became free: its age, for garbage collection
    BlockIndex before = kNone;        // neighbours by address in the same segment
    BlockIndex after = kNone;
    std::uint32_t range = kNone;  // of an expandable segment: index in ranges_
    std::uint32_t stream = 0;     // index in streams_
    std::uint32_t pending = 0;    // events that must be done before it is free
    bool small = false;
    bool live = false;
    bool mapped = true;
    bool shared = false;  // other streams use it: uses_ has them
    bool split() const { return before != kNone || after != kNone; }
  };

  struct Pool {
    bool small = false;
    std::uint64_t searches = 0;
    std::vector<FreeBlocks> free;                         // by index of stream
    std::vector<std::map<Address, BlockIndex>> unmapped;  // likewise; pieces of expandable segments
  };

  // A reserved range of addresses, in which pages come and go.
  struct Range {
    Address base;
    Bytes size;
    Bytes page;
  };

  struct StreamInfo {
    StreamId id;
    std::uint64_t c10_id = 0;
  };

  // caching.cpp
  std::uint32_t stream_index(StreamId stream);
  bool collects_garbage() const { return limit_ && settings_.garbage_collection_threshold > 0; }
  BlockIndex take_free(Pool& pool, Bytes size, std::uint32_t stream);
  BlockIndex take_new_or_make_room(Pool& pool, Bytes size, Bytes segment, std::uint32_t stream);
  BlockIndex take_new(Pool& pool, Bytes size, Bytes segment, std::uint32_t stream);
  bool may_split(const Block& block, Bytes size) const;
  BlockIndex split_front(BlockIndex whole, Bytes size);
  Shortage short_of(Shortage::Reason reason, Bytes requested, Bytes size, Bytes segment) const;
  void end_life(Block& block);
  void poll_pending();
  void finish(BlockIndex index);
  void give_back(BlockIndex index);
  // caching_blocks.cpp
  BlockIndex make_block(const Block& block);
  void drop_block(BlockIndex index);
  Block& live_block(BlockId id);
  Pool& pool_of(const Block& block) { return pools_[block.small ? 1 : 0]; }
  void insert_free(BlockIndex index);
  void erase_free(BlockIndex index);
  void merge(BlockIndex into, BlockIndex other);
  bool idle(BlockIndex index) const;
  std::uint64_t number(const Block* parent);
  void grow_reserved(Bytes bytes);
  void tell(AllocatorEvent::Action action, Address at, Bytes bytes, std::uint32_t stream);
  std::uint32_t add_range(const SeedSegment& segment);
  // caching_release.cpp
  void release(BlockIndex index);
  bool release_oversize(Pool& pool, Bytes size, std::uint32_t stream);
  void release_all();
  void collect_garbage();
  // caching_expandable.cpp
  Bytes page_of(bool small) const;
  FreeBlocks::Cursor fit_expandable(const Pool& pool, FreeBlocks::Cursor best, std::uint32_t stream) const;
  BlockIndex take_expandable(Pool& pool, Bytes size, std::uint32_t stream);
  BlockIndex find_expandable(Pool& pool, Bytes size, std::uint32_t stream);
  bool map(BlockIndex index, Bytes size);
  void unmap(BlockIndex index);
  void cut_off(BlockIndex index, Address at, Bytes size, bool front);
  void give_up_range(BlockIndex index);
  void merge_neighbours(BlockIndex index);

  const CachingSettings settings_;
  const std::optional<Bytes> limit_;  // of reserved bytes
  Device& device_;
  Listener* const listener_;

  std::vector<StreamInfo> streams_;
  std::vector<std::uint32_t> by_handle_;  // indices in streams_, by value of the stream
  std::array<Pool, 2> pools_;             // large, small: the order in which they are released
  std::vector<Block> blocks_;
  std::vector<BlockIndex> unused_;  // in blocks_
  std::vector<Range> ranges_;
  std::unordered_map<BlockIndex, std::vector<std::uint32_t>> uses_;  // streams that use a block besides its own
  PendingFrees pending_;
  std::uint64_t numbers_ = 0;
  CachingStats stats_;
};

}  // namespace ullage::sim
