// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tier below memory: one unnamed file that holds the bytes of storages whose pages were taken away.

#include "ullage/store/child_watch.h"
#include "ullage/store/spill_folder.h"
#include "ullage/store/spill_space.h"
#include "ullage/store/tier.h"
#include "ullage/store/unnamed_file.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ullage::store {

// All sizes are bytes; times are summed over threads, so they may pass the wall's clock.
struct SpillCounts {
  Bytes in_use;
  Bytes in_use_peak;
  Bytes written;
  Bytes read;
  Bytes file_bytes;         // blocks of the disk behind the file: in use, held, and gaps for later slots
  Bytes held_for_children;  // freed, but a forked child may still read it; looked at when slots are taken
  std::uint64_t write_us;
  std::uint64_t read_us;
};

// True in builds without NDEBUG, with sanitizers or with ULLAGE_CHECKSUMS defined.
bool checksums_by_default();

// Thread-safe. Reading and writing hold no lock while the disk works. A signal handler may read if it was raised by a
// touch of memory (the thread is then not inside this class): a read that succeeds allocates nothing.
class SpillFile final : public Tier {
 public:
  struct Options {
    bool checksums = checksums_by_default();  // of each slot, checked when it is read; costs a copy on writing
    SpillCalls calls = SpillCalls::system();
    Bridge* bridge = nullptr;  // to the memory that is written and read; null: loads and stores reach it
  };

  static Result<std::unique_ptr<SpillFile>> open(const SpillPlace& place, const Options& options);
  // open() is the way to make one.
  SpillFile(SpillPlace place, const Options& options, std::unique_ptr<UnnamedFile> file);

  // Space in the file, with blocks of the disk behind it where the file system can promise them; `size` is a multiple
  // of 4096. BadArgument: the bound is reached. System: the disk is full or refused, or this is a forked child.
  Result<SpillSlot> take(Bytes size) override;

  // The whole slot; `from` is a multiple of 4096. After an error the slot holds nothing and may be written again.
  // Pages that are taken away meanwhile are no harm: pages_are_gone() tells that error (the only NotFound) from others.
  // Pages that are shared with a forked process are copied through a small buffer: a write past the cache pins them,
  // and for that the kernel (since 5.19) first makes a copy of each, which would take the very memory that is to be
  // freed.
  Status write(const SpillSlot& slot, Address from, Sharing sharing = Sharing::None) override;
  static bool pages_are_gone(const Error& error) { return error.kind == Error::Kind::NotFound; }

  // The whole slot, or an error; then the bytes at `into` are of no use. Nobody else touches them before it returns.
  // BadFile: the file was cut short, was never wholly written there, or its bytes changed (with checksums).
  Status read(const SpillSlot& slot, Address into) override;

  // The slot's space is free again; where a forked child may still read it, as soon as that child has ended. In a child
  // it only stops being known. No write or read of this slot may be under way.
  void give(const SpillSlot& slot) override;

  // Around every fork (pthread_atfork). Between the first call and the second or third nothing else comes through:
  // the first waits for reads and writes under way, because a fork amid them would mix up the pages of parent and child
  // (open(2), notes on O_DIRECT). The child may read what was in use at the fork, and neither takes nor writes.
  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;

  SpillCounts counts() const;
  const SpillPlace& place() const { return place_; }
  bool past_the_cache() const { return file_->past_the_cache(); }
  int descriptor() const { return file_->descriptor(); }

 private:
  class Work;

  Result<SpillSlot> grow(Bytes size);
  Status find_blocks(const SpillSlot& slot);
  Status empty_gaps(Bytes size);
  Status write_copied(SpillContent& content, Address from);
  Status read_copied(const SpillContent& content, Address into);
  Error other_bytes(const SpillSlot& slot) const;
  Error limit_reached(Bytes size) const;
  Error no_spilling_here() const { return file_->error(Error::Kind::System, "a forked child does not spill"); }

  const SpillPlace place_;
  const bool checksums_;
  Bridge* const bridge_;
  const std::unique_ptr<UnnamedFile> file_;
  std::atomic<bool> is_child_{false};

  std::mutex growing_;  // taken before mutex_; one thread at a time asks the disk for blocks
  mutable std::mutex mutex_;
  SpillSpace space_;
  ChildWatch children_;
  std::atomic<std::uint32_t> under_way_{0};  // reads and writes; begun under mutex_, ended without it

  std::atomic<std::uint64_t> written_{0}, read_{0}, write_us_{0}, read_us_{0};
};

}  // namespace ullage::store
