// SPDX-License-Identifier: Apache-2.0
#pragma once

// The spill file: a tier (tier.h) in one unnamed file on a disk, which holds the bytes of spilled storages.

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

// Times are summed over threads, so they may be longer than the time that passed.
struct SpillCounts {
  Bytes in_use;
  Bytes in_use_peak;
  Bytes written;
  Bytes read;
  Bytes file_bytes;  // the file's blocks on the disk: in use, held, and gaps for later slots
  // Given back, but a forked child may still read it; whether the child has ended is checked when a slot is taken.
  Bytes held_for_children;
  std::uint64_t write_us;
  std::uint64_t read_us;
};

// True in builds without NDEBUG, with sanitizers or with ULLAGE_CHECKSUMS defined.
bool checksums_by_default();

// Thread-safe. No lock is held while the disk reads or writes. The handler of a signal may call read() if a touch of
// memory raised the signal: the thread is then not inside this class. A read that succeeds allocates nothing.
class SpillFile final : public Tier {
 public:
  struct Options {
    bool checksums = checksums_by_default();  // keeps one for each slot and checks it on reading; writing costs a copy
    SpillCalls calls = SpillCalls::system();
    Bridge* bridge = nullptr;  // copies from and to the memory of storages; null: the processor reaches that memory
  };

  // Makes the file in the place's folder. System: the folder refuses it.
  static Result<std::unique_ptr<SpillFile>> open(const SpillPlace& place, const Options& options);
  // Use open() instead.
  SpillFile(SpillPlace place, const Options& options, std::unique_ptr<UnnamedFile> file);

  // As Tier::take(). The slot gets blocks of the disk at once if the file system can promise them. BadArgument: the
  // bound (SpillPlace::most) is reached. System: the disk is full, the file may not become longer, the system refused,
  // or this is a forked child.
  Result<SpillSlot> take(Bytes size) override;

  // As Tier::write(). The pages at `from` may be taken away meanwhile: then pages_are_gone() is true for the error,
  // which is the only NotFound. Pages that are shared with a forked process are copied through a small buffer. A write
  // past the page cache would pin them, and since Linux 5.19 the kernel first copies each shared page that it pins.
  // That would take the very memory that is to be freed.
  Status write(const SpillSlot& slot, Address from, Sharing sharing = Sharing::None, CopyGate* gate = nullptr) override;
  static bool pages_are_gone(const Error& error) { return error.kind == Error::Kind::NotFound; }

  // As Tier::read(). BadFile: the file was cut short, the slot was never wholly written, or (with checksums) its bytes
  // changed.
  Status read(const SpillSlot& slot, Address into) override;

  // As Tier::give(). If a forked child may still read the slot, its space becomes free only after that child has ended.
  // In a forked child only the child's own account changes.
  void give(const SpillSlot& slot) override;

  // To be called around every fork (pthread_atfork). The first waits for reads and writes in progress. A fork during
  // one would mix up the pages of parent and child (open(2), notes on O_DIRECT). It lets no other call through until
  // after the fork. The child may read what was in use at the fork; it can neither take nor write slots.
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
  Status write_copied(SpillContent& content, Address from, CopyGate* gate);
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
  std::atomic<std::uint32_t> under_way_{0};  // reads and writes in progress; they begin under mutex_, end without it

  std::atomic<std::uint64_t> written_{0}, read_{0}, write_us_{0}, read_us_{0};
};

}  // namespace ullage::store
