// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model of PyTorch's native CUDA caching allocator. It says where each request is placed, which segments are taken
// from the device, and when they are given back. It models one device, the default pools and any number of streams,
// without memory, torch or threads. Private pools (CUDA graphs), peer access and sharing between processes are not
// modelled.
//
//   segment  |####|##|--------|#|---|     blocks: # live, - free. A request takes the front of the best fitting free
//                     ^ split              block, and the rest stays free. A freed block merges with free neighbours.
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

// Why a request failed, and the figures at that moment. TooLarge: nothing changed, stats and listener included. Else
// all pending frees were completed, and the free segments of all streams were given back.
struct Shortage {
  enum class Reason {
    TooLarge,    // 2^60 bytes or more; refused without a try
    OverLimit,   // reserved + segment would exceed the memory fraction
    DeviceFull,  // the device refused
  };
  Reason reason = Reason::DeviceFull;
  Bytes requested;
  Bytes rounded;  // size of the block that it needed; if TooLarge, the requested bytes
  Bytes segment;  // size of the segment that would have held it; if TooLarge, the requested bytes
  Bytes allocated;
  Bytes reserved;
  Bytes device_free;
};

struct CachingStats {
  Bytes allocated;  // block sizes, counted until the free is requested
  Bytes allocated_peak;
  Bytes reserved;  // taken from the device
  Bytes reserved_peak;
  std::uint64_t segments = 0;        // held now; expandable segments do not count
  std::uint64_t segments_taken = 0;  // since the beginning, without seeded ones; each map of pages counts as one
  std::uint64_t retries = 0;         // how often everything free was given back to make room
  std::uint64_t out_of_memory = 0;   // refused requests, except those that were TooLarge
};

class CachingAllocator final {
 public:
  // `device` and `listener` (which may be null) must outlive the allocator. A CUDA event that a free waits for (see
  // record_stream) counts as done at its `event_queries`-th query; 0 and 1 both mean the first.
  CachingAllocator(const CachingSettings& settings, Device& device, Listener* listener = nullptr,
                   unsigned event_queries = 0);

  // Sets c10's id of a stream, which decides the order in which frees of several streams complete. Default: the value
  // of the StreamId.
  void name_stream(StreamId stream, std::uint64_t c10_id);

  // `size` is above zero.
  std::variant<Allocation, Shortage> allocate(Bytes size, StreamId stream);
  // The owner gives the block back. It becomes free at once, or once all other streams that used it are done.
  // ContractError if the block is not live.
  void free(BlockId block);
  // Notes that `stream` uses the block too; no effect if it is the block's own stream.
  void record_stream(BlockId block, StreamId stream);
  // Completes all pending frees, then gives the free segments and the free pages of expandable segments back.
  void empty_cache();

  // For recordings that report a free in two parts. After request_free() the block stays held until complete_free().
  void request_free(BlockId block);
  void complete_free(BlockId block);

  // Adds a segment that existed before the first event. Seed the segments oldest first, before any request. The pieces
  // fill the segment without gaps, in address order. An expandable segment is the whole reserved range with its
  // unmapped pieces. Returns the ids of the Live pieces, in order. The listener is not called.
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
  // All blocks with memory mapped at them, by address, for checks and drawings. A block with `first_of_segment` begins
  // a segment or, in an expandable segment, a stretch of mapped pages.
  struct BlockView {
    Address address;
    Bytes size;
    Bytes requested;  // zero if the block is neither live nor pending
    StreamId stream;
    bool live = false;
    bool pending = false;  // its free was requested and is not complete
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
    std::uint64_t born = 0;           // order among free blocks of equal size, see Ties
    std::uint64_t searches_then = 0;  // Pool::searches when it became free, for its age in garbage collection
    BlockIndex before = kNone;        // neighbours in the same segment, by address
    BlockIndex after = kNone;
    std::uint32_t range = kNone;  // index in ranges_ if in an expandable segment
    std::uint32_t stream = 0;     // index in streams_
    std::uint32_t pending = 0;    // events that must be done before it is free
    bool small = false;
    bool live = false;
    bool mapped = true;
    bool shared = false;  // other streams use it; uses_ lists them
    bool split() const { return before != kNone || after != kNone; }
  };

  struct Pool {
    bool small = false;
    std::uint64_t searches = 0;                           // for a free block; counted only if garbage is collected
    std::vector<FreeBlocks> free;                         // by index of stream
    std::vector<std::map<Address, BlockIndex>> unmapped;  // by index of stream; pieces of expandable segments
  };

  // The reserved addresses of an expandable segment, in which pages are mapped and unmapped.
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
  const std::optional<Bytes> limit_;  // on reserved bytes; none if the memory fraction is 1
  Device& device_;
  Listener* const listener_;

  std::vector<StreamInfo> streams_;
  std::vector<std::uint32_t> by_handle_;  // indices in streams_, ascending by StreamId
  std::array<Pool, 2> pools_;             // large, small; released in this order
  std::vector<Block> blocks_;
  std::vector<BlockIndex> unused_;  // unused places in blocks_
  std::vector<Range> ranges_;
  std::unordered_map<BlockIndex, std::vector<std::uint32_t>> uses_;  // other streams that use a block
  PendingFrees pending_;
  std::uint64_t numbers_ = 0;  // the newest number that number() gave out
  CachingStats stats_;
};

}  // namespace ullage::sim
