// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/host_tier.h"

#include "ullage/base/sizes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ullage::cuda {
namespace {

// Memory is locked in pieces of this size. Locking costs one call for each piece and some time for each page. At 12
// GB/s a piece is copied in 6 ms.
constexpr Bytes kLockedAtOnce = 64_MiB;

void* pointer(Address at) { return reinterpret_cast<void*>(at.value); }

}  // namespace

Result<std::unique_ptr<HostTier>> HostTier::open(Driver& driver, Bytes most, store::Tier* below) {
  const Bytes size = round_down(most, store::kSmallPage);
  if (size == Bytes{}) return std::unique_ptr<HostTier>(new HostTier(driver, {}, below));
  void* at = ::mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return Error{Error::Kind::System, "no " + to_string(size) + " of host memory: " + std::strerror(errno),
                 "--host-memory"};
  return std::unique_ptr<HostTier>(new HostTier(driver, {{reinterpret_cast<std::uint64_t>(at)}, size}, below));
}

HostTier::HostTier(Driver& driver, store::AddressRange memory, store::Tier* below)
    : driver_(driver), memory_(memory), below_(below), vacant_(memory) {}

HostTier::~HostTier() {
  for (Bytes done; done < counts_.locked; done += kLockedAtOnce) driver_.unpin(pointer(memory_.begin + done));
  if (memory_.size > Bytes{}) ::munmap(pointer(memory_.begin), memory_.size.count);
}

Result<store::SpillSlot> HostTier::take(Bytes size) {
  Result<store::SpillSlot> here = take_here(size);
  if (here || below_ == nullptr) return here;
  Result<store::SpillSlot> slot = below_->take(size);
  if (slot) {
    const std::lock_guard lock(mutex_);
    counts_.passed_down += size;
  }
  return slot;
}

Result<store::SpillSlot> HostTier::take_here(Bytes size) {
  const std::lock_guard lock(mutex_);
  const std::optional<Address> place = vacant_.take(size, store::kSmallPage);
  if (!place)
    return Error{Error::Kind::BadArgument,
                 "no room for " + with_count(size) + " more in the host's memory, " + to_string(counts_.in_use) +
                     " of " + with_count(memory_.size) +
                     " in use; raise it with --host-memory, or give a disk with --spill",
                 ""};
  const Bytes offset = *place - memory_.begin;
  if (const Status locked = lock_up_to(offset + size); !locked) {
    vacant_.give({*place, size});
    return Error{Error::Kind::System,
                 "the host locks no more than " + to_string(counts_.locked) + " of the " + to_string(memory_.size) +
                     " that evicted tensors may take (" + locked.error().message + "); give a disk with --spill",
                 ""};
  }
  counts_.in_use += size;
  counts_.in_use_peak = std::max(counts_.in_use_peak, counts_.in_use);
  return store::SpillSlot{offset.count, size, next_serial_++, /*height=*/1};
}

// Locks memory up to the offset `end`. An error: the host locks no more at present. What is locked by then stays
// locked, and counts for later slots.
Status HostTier::lock_up_to(Bytes end) {
  while (counts_.locked < end) {
    const Bytes piece = std::min(kLockedAtOnce, memory_.size - counts_.locked);
    const Status locked = driver_.pin(pointer(memory_.begin + counts_.locked), piece);
    counts_.lock_failure = locked ? "" : locked.error().message;
    if (!locked) return locked.error();
    counts_.locked += piece;
  }
  return success();
}

Status HostTier::write(const store::SpillSlot& slot, Address from, Sharing sharing, store::CopyGate* gate) {
  if (!is_here(slot)) return below_->write(slot, from, sharing, gate);
  return in_pieces(slot,
                   [&](void* here, Bytes done, Bytes part) { return driver_.copy_out(from + done, here, part, gate); });
}

Status HostTier::read(const store::SpillSlot& slot, Address into) {
  if (!is_here(slot)) return below_->read(slot, into);
  return in_pieces(slot, [&](void* here, Bytes done, Bytes part) { return driver_.copy_in(here, into + done, part); });
}

// Copies a slot in parts, none of which crosses the end of a piece that was locked at once. Drivers refuse a copy
// across two adjoining pieces (sgl-project/sglang pull request 36798).
template <class Copy>
Status HostTier::in_pieces(const store::SpillSlot& slot, const Copy& copy) const {
  for (Bytes done; done < slot.size;) {
    const Bytes offset = Bytes{slot.offset} + done;
    const Bytes part = std::min(slot.size - done, kLockedAtOnce - Bytes{offset.count % kLockedAtOnce.count});
    ULLAGE_TRY(copy(pointer(memory_.begin + offset), done, part));
    done += part;
  }
  return success();
}

void HostTier::give(const store::SpillSlot& slot) {
  if (!is_here(slot)) return below_->give(slot);
  const std::lock_guard lock(mutex_);
  vacant_.give({memory_.begin + Bytes{slot.offset}, slot.size});
  counts_.in_use -= slot.size;
}

HostTier::Counts HostTier::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace ullage::cuda
