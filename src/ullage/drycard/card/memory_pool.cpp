// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/memory_pool.h"

#include <algorithm>
#include <set>

namespace ullage::drycard {
namespace {

constexpr std::size_t kSegment = std::size_t{32} << 20;
constexpr std::size_t kPart = 512;

// cudaMemPoolAttr
constexpr int kFirstReuse = 1;
constexpr int kLastReuse = 3;
constexpr int kReleaseThreshold = 4;
constexpr int kReservedCurrent = 5;
constexpr int kReservedHigh = 6;
constexpr int kUsedCurrent = 7;
constexpr int kUsedHigh = 8;

struct Pools {
  std::set<MemoryPool*> all;
  MemoryPool* standard[kMostCards]{};
  MemoryPool* chosen[kMostCards]{};
};

Pools& pools() {
  static Pools* made = new Pools;
  return *made;
}

MemoryPool* standard_pool(int ordinal) {
  Pools& self = pools();
  if (self.standard[ordinal] == nullptr) {
    self.standard[ordinal] = new MemoryPool(ordinal);
    self.all.insert(self.standard[ordinal]);
  }
  return self.standard[ordinal];
}

MemoryPool* pool_of_card(int ordinal) {
  Pools& self = pools();
  return self.chosen[ordinal] != nullptr ? self.chosen[ordinal] : standard_pool(ordinal);
}

Error take_from(MemoryPool* pool, std::size_t bytes, Address* at) {
  *at = 0;
  if (const Error error = use_card(pool->card()); error != kSuccess) return error;
  if (bytes == 0) return kSuccess;
  const std::lock_guard hold(lock());
  return pool->take(bytes, at);
}

bool is_card(int ordinal) { return ordinal >= 0 && ordinal < machine().visible; }

}  // namespace

bool MemoryPool::grow(std::size_t size, std::size_t asked) {
  std::size_t bytes = (size + kSegment - 1) / kSegment * kSegment;
  if (free_bytes(card_) < bytes) bytes = in_pages(size);  // near the limit, only what is needed
  if (!charge(card_, bytes, asked)) return false;
  const Address at = take_addresses(card_, bytes);
  if (at == 0) {
    discharge(card_, bytes);
    return false;
  }
  segments_[at] = bytes;
  free_.give(at, bytes);
  held_ += bytes;
  held_peak_ = std::max(held_peak_, held_);
  return true;
}

Error MemoryPool::take(std::size_t bytes, Address* at) {
  if (bytes > (std::size_t{1} << 50)) return charge(card_, bytes, bytes) ? kSuccess : kOutOfMemory;
  const std::size_t size = (bytes + kPart - 1) / kPart * kPart;
  *at = free_.take(size, kPart);
  if (*at == 0) {
    if (free_bytes(card_) < in_pages(size)) trim_pools(card_);
    if (!grow(size, bytes)) return kOutOfMemory;
    *at = free_.take(size, kPart);
  }
  used_ += size;
  used_peak_ = std::max(used_peak_, used_);
  add_block({*at, size, bytes, card_, Block::Kind::Pooled, this});
  return kSuccess;
}

Error MemoryPool::give(Address at) {
  const auto block = block_at(at);
  if (!block || block->pool != this) return kInvalidValue;
  free_.give(at, block->size);
  used_ -= block->size;
  remove_block(at);
  if (held_ > threshold_) trim(threshold_);
  return kSuccess;
}

void MemoryPool::trim(std::uint64_t keep) {
  for (auto it = segments_.begin(); it != segments_.end() && held_ > keep;) {
    const auto [at, size] = *it;
    if (!free_.is_free(at, at + size)) {
      ++it;
      continue;
    }
    free_.remove(at, at + size);
    give_addresses(card_, at, size);
    discharge(card_, size);
    held_ -= size;
    it = segments_.erase(it);
  }
}

Error MemoryPool::get(int attribute, void* value) const {
  const auto number = [value](std::uint64_t bytes) {
    *static_cast<std::uint64_t*>(value) = bytes;
    return kSuccess;
  };
  if (attribute >= kFirstReuse && attribute <= kLastReuse) {
    *static_cast<int*>(value) = reuse_[attribute - kFirstReuse];
    return kSuccess;
  }
  switch (attribute) {
    case kReleaseThreshold:
      return number(threshold_);
    case kReservedCurrent:
      return number(held_);
    case kReservedHigh:
      return number(held_peak_);
    case kUsedCurrent:
      return number(used_);
    case kUsedHigh:
      return number(used_peak_);
    default:
      return kInvalidValue;
  }
}

Error MemoryPool::set(int attribute, const void* value) {
  if (attribute >= kFirstReuse && attribute <= kLastReuse) {
    reuse_[attribute - kFirstReuse] = *static_cast<const int*>(value);
    return kSuccess;
  }
  switch (attribute) {
    case kReleaseThreshold:
      threshold_ = *static_cast<const std::uint64_t*>(value);
      return kSuccess;
    case kReservedHigh:
      held_peak_ = held_;
      return kSuccess;
    case kUsedHigh:
      used_peak_ = used_;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

void trim_pools(int ordinal) {
  for (MemoryPool* pool : pools().all) {
    if (pool->card() == ordinal) pool->trim(0);
  }
}

ULLAGE_CARD_API int cudaDeviceGetDefaultMemPool(MemoryPool** pool, int ordinal) {
  if (!is_card(ordinal)) return noted(kInvalidDevice);
  const std::lock_guard hold(lock());
  *pool = standard_pool(ordinal);
  return kSuccess;
}

ULLAGE_CARD_API int cudaDeviceGetMemPool(MemoryPool** pool, int ordinal) {
  if (!is_card(ordinal)) return noted(kInvalidDevice);
  const std::lock_guard hold(lock());
  *pool = pool_of_card(ordinal);
  return kSuccess;
}

ULLAGE_CARD_API int cudaDeviceSetMemPool(int ordinal, MemoryPool* pool) {
  if (!is_card(ordinal)) return noted(kInvalidDevice);
  const std::lock_guard hold(lock());
  pools().chosen[ordinal] = pool;
  return kSuccess;
}

ULLAGE_CARD_API int cudaMemPoolCreate(MemoryPool** pool, const PoolProperties* properties) {
  const int ordinal = properties->location.type == kOnDevice ? properties->location.id : 0;
  if (!is_card(ordinal)) return noted(kInvalidValue);
  const std::lock_guard hold(lock());
  *pool = new MemoryPool(ordinal);
  pools().all.insert(*pool);
  return kSuccess;
}

// The object is not deleted, because memory that was taken from it may still be given back.
ULLAGE_CARD_API int cudaMemPoolDestroy(MemoryPool* pool) {
  const std::lock_guard hold(lock());
  pool->trim(0);
  std::uint64_t none = 0;
  pool->set(kReleaseThreshold, &none);
  return kSuccess;
}

ULLAGE_CARD_API int cudaMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  const std::lock_guard hold(lock());
  return noted(pool->set(attribute, value));
}

ULLAGE_CARD_API int cudaMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  const std::lock_guard hold(lock());
  return noted(pool->get(attribute, value));
}

ULLAGE_CARD_API int cudaMemPoolTrimTo(MemoryPool* pool, std::size_t keep) {
  const std::lock_guard hold(lock());
  pool->trim(keep);
  return kSuccess;
}

ULLAGE_CARD_API int cudaMemPoolSetAccess(MemoryPool*, const AccessDescription*, std::size_t) { return kSuccess; }

ULLAGE_CARD_API int cudaMemPoolGetAccess(int* flags, MemoryPool*, Location*) {
  *flags = 3;  // read and write
  return kSuccess;
}

ULLAGE_CARD_API int cudaMallocAsync(void** place, std::size_t bytes, void*) {
  const int ordinal = current_card();
  if (const Error error = use_card(ordinal); error != kSuccess) return noted(error);
  const std::lock_guard hold(lock());
  return noted(take_from(pool_of_card(ordinal), bytes, reinterpret_cast<Address*>(place)));
}

ULLAGE_CARD_API int cudaMallocFromPoolAsync(void** place, std::size_t bytes, MemoryPool* pool, void*) {
  return noted(take_from(pool, bytes, reinterpret_cast<Address*>(place)));
}

ULLAGE_CARD_API int cudaFreeAsync(void* place, void*) { return noted(release(reinterpret_cast<Address>(place))); }

ULLAGE_CARD_API int cuMemAllocAsync(Address* at, std::size_t bytes, void* stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(at), bytes, stream);
}
ULLAGE_CARD_API int cuMemAllocFromPoolAsync(Address* at, std::size_t bytes, MemoryPool* pool, void*) {
  return take_from(pool, bytes, at);
}
ULLAGE_CARD_API int cuMemFreeAsync(Address at, void*) { return release(at); }
ULLAGE_CARD_API int cuDeviceGetDefaultMemPool(MemoryPool** pool, int card) {
  return cudaDeviceGetDefaultMemPool(pool, card);
}
ULLAGE_CARD_API int cuDeviceGetMemPool(MemoryPool** pool, int card) { return cudaDeviceGetMemPool(pool, card); }
ULLAGE_CARD_API int cuDeviceSetMemPool(int card, MemoryPool* pool) { return cudaDeviceSetMemPool(card, pool); }
ULLAGE_CARD_API int cuMemPoolCreate(MemoryPool** pool, const PoolProperties* properties) {
  return cudaMemPoolCreate(pool, properties);
}
ULLAGE_CARD_API int cuMemPoolDestroy(MemoryPool* pool) { return cudaMemPoolDestroy(pool); }
ULLAGE_CARD_API int cuMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  return cudaMemPoolSetAttribute(pool, attribute, value);
}
ULLAGE_CARD_API int cuMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  return cudaMemPoolGetAttribute(pool, attribute, value);
}
ULLAGE_CARD_API int cuMemPoolTrimTo(MemoryPool* pool, std::size_t keep) { return cudaMemPoolTrimTo(pool, keep); }
ULLAGE_CARD_API int cuMemPoolSetAccess(MemoryPool*, const AccessDescription*, std::size_t) { return kSuccess; }

}  // namespace ullage::drycard
