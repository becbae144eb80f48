// SPDX-License-Identifier: Apache-2.0
#include "stand_in_driver.h"

#include "ullage/cuda/driver_abi.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace {

using namespace ullage::cuda;

constexpr std::uint64_t kPage = 2u << 20;
constexpr abi::Result kInvalid = 1;
constexpr abi::Result kNoDevice = 101;

struct Kernel {
  void (*run)(void*);
  void* argument;
  std::uint64_t at, size;

  bool uses(std::uint64_t from, std::uint64_t length) const { return at < from + length && from < at + size; }
};

struct Card {
  std::mutex lock;
  std::mutex working;  // held while kernels run, so that they run in order
  std::uint64_t total = 1ull << 30, to_pin = 1ull << 30;
  std::uint64_t held = 0;
  int fails_in = 0;
  bool broken = false;
  StandInCounts counts{};
  int file = memfd_create("card", MFD_CLOEXEC);
  std::uint64_t file_end = 0;
  std::vector<std::uint64_t> free_pages;          // offsets in the file
  std::map<abi::Handle, int> references;          // a handle is its offset plus a page
  std::map<std::uint64_t, std::uint64_t> ranges;  // reserved addresses: begin to size
  std::map<std::uint64_t, abi::Handle> maps;      // mapped pages by address
  std::map<std::uint64_t, std::uint64_t> pinned;  // host address to size
  std::deque<Kernel> queue;
  std::uint64_t launched = 0;
};

Card& card() {
  static auto* one = new Card;
  return *one;
}

using Guard = std::lock_guard<std::mutex>;

void note_peak(Card& c) {
  c.counts.used_peak = std::max(c.counts.used_peak, c.counts.used);
  c.counts.shown_peak = std::max(c.counts.shown_peak, c.counts.used + c.held);
}

bool fails(Card& c) {
  if (c.fails_in == 0) return false;
  --c.fails_in;
  return c.fails_in == 0;
}

void drop(Card& c, abi::Handle handle) {
  if (--c.references.at(handle) > 0) return;
  c.references.erase(handle);
  c.free_pages.push_back(handle - kPage);
  c.counts.used -= kPage;
  --c.counts.handles;
}

void* pointer(std::uint64_t at) { return reinterpret_cast<void*>(at); }

}  // namespace

extern "C" {

void stand_in_reset(std::uint64_t card_bytes, std::uint64_t host_bytes_to_pin) {
  Card& c = card();
  const Guard guard(c.lock);
  c.total = card_bytes;
  c.to_pin = host_bytes_to_pin;
  c.held = 0;
  c.fails_in = 0;
  c.broken = false;
  c.counts.used_peak = c.counts.shown_peak = c.counts.used;
  c.counts.waits = c.counts.copies_out = 0;
}

StandInCounts stand_in_counts() {
  const Guard guard(card().lock);
  return card().counts;
}

void stand_in_launch(void (*kernel)(void*), void* argument, std::uint64_t at, std::uint64_t size) {
  const Guard guard(card().lock);
  card().queue.push_back({kernel, argument, at, size});
  ++card().launched;
}

std::uint64_t stand_in_launched() {
  const Guard guard(card().lock);
  return card().launched;
}

void stand_in_run(std::uint64_t kernels) {
  Card& c = card();
  const Guard in_order(c.working);
  for (;;) {
    Kernel next{};
    {
      const Guard guard(c.lock);
      if (c.queue.empty() || c.launched - c.queue.size() >= kernels) return;
      next = c.queue.front();
    }
    next.run(next.argument);
    const Guard guard(c.lock);
    c.queue.pop_front();
  }
}

void stand_in_fail(int call) {
  const Guard guard(card().lock);
  card().fails_in = call;
}

void stand_in_hold(std::uint64_t bytes) {
  const Guard guard(card().lock);
  card().held = bytes;
  note_peak(card());
}

void stand_in_break() {
  const Guard guard(card().lock);
  card().broken = true;
}

abi::Result cuInit(unsigned) { return abi::kSuccess; }

abi::Result cuGetErrorString(abi::Result error, const char** text) {
  *text = error == abi::kOutOfMemory ? "out of memory" : "refused by the stand-in";
  return abi::kSuccess;
}

abi::Result cuDeviceGet(abi::Device* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? abi::kSuccess : kNoDevice;
}

abi::Result cuDeviceGetPCIBusId(char* text, int size, abi::Device) {
  if (size < static_cast<int>(sizeof kStandInBusId)) return kInvalid;
  std::memcpy(text, kStandInBusId, sizeof kStandInBusId);
  return abi::kSuccess;
}

abi::Result cuDevicePrimaryCtxRetain(abi::Context* context, abi::Device) {
  *context = reinterpret_cast<abi::Context>(0x10);
  return abi::kSuccess;
}
abi::Result cuDevicePrimaryCtxRelease_v2(abi::Device) { return abi::kSuccess; }

static thread_local int contexts_here = 0;
abi::Result cuCtxPushCurrent_v2(abi::Context) {
  ++contexts_here;
  return abi::kSuccess;
}
abi::Result cuCtxPopCurrent_v2(abi::Context* context) {
  if (contexts_here == 0) return kInvalid;
  --contexts_here;
  *context = reinterpret_cast<abi::Context>(0x10);
  return abi::kSuccess;
}

abi::Result cuCtxSynchronize() {
  if (contexts_here == 0) return kInvalid;
  stand_in_run(UINT64_MAX);
  const Guard guard(card().lock);
  ++card().counts.waits;
  return abi::kSuccess;
}

abi::Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (contexts_here == 0) return kInvalid;
  Card& c = card();
  const Guard guard(c.lock);
  if (c.broken) return kInvalid;
  *total = c.total;
  *free = c.total - std::min(c.total, c.counts.used + c.held);
  return abi::kSuccess;
}

abi::Result cuMemGetAllocationGranularity(std::size_t* bytes, const abi::AllocationProperties*, int) {
  *bytes = kPage;
  return abi::kSuccess;
}

abi::Result cuMemAddressReserve(abi::Pointer* at, std::size_t size, std::size_t, abi::Pointer, unsigned long long) {
  if (size == 0 || size % kPage != 0) return kInvalid;
  void* got = mmap(nullptr, size + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return abi::kOutOfMemory;
  const auto address = reinterpret_cast<std::uint64_t>(got);
  *at = (address + kPage - 1) / kPage * kPage;
  if (*at > address) munmap(got, *at - address);
  munmap(pointer(*at + size), address + kPage - *at);
  const Guard guard(card().lock);
  card().ranges[*at] = size;
  return abi::kSuccess;
}

abi::Result cuMemAddressFree(abi::Pointer at, std::size_t size) {
  Card& c = card();
  const Guard guard(c.lock);
  const auto range = c.ranges.find(at);
  if (range == c.ranges.end() || range->second != size) return kInvalid;
  const auto inside = c.maps.lower_bound(at);
  if (inside != c.maps.end() && inside->first < at + size) return kInvalid;
  c.ranges.erase(range);
  munmap(pointer(at), size);
  return abi::kSuccess;
}

abi::Result cuMemCreate(abi::Handle* handle, std::size_t size, const abi::AllocationProperties* wanted,
                        unsigned long long) {
  Card& c = card();
  const Guard guard(c.lock);
  if (size != kPage || wanted->type != abi::kPinned || wanted->location.type != abi::kOnDevice) return kInvalid;
  if (fails(c) || c.counts.used + c.held + size > c.total) return abi::kOutOfMemory;
  if (c.free_pages.empty()) {
    c.free_pages.push_back(c.file_end);
    c.file_end += kPage;
    if (ftruncate(c.file, static_cast<off_t>(c.file_end)) != 0) return abi::kOutOfMemory;
  }
  *handle = c.free_pages.back() + kPage;
  c.free_pages.pop_back();
  c.references[*handle] = 1;
  c.counts.used += size;
  note_peak(c);
  ++c.counts.handles;
  return abi::kSuccess;
}

abi::Result cuMemRelease(abi::Handle handle) {
  Card& c = card();
  const Guard guard(c.lock);
  if (!c.references.contains(handle)) return kInvalid;
  drop(c, handle);
  return abi::kSuccess;
}

abi::Result cuMemMap(abi::Pointer at, std::size_t size, std::size_t offset, abi::Handle handle, unsigned long long) {
  Card& c = card();
  const Guard guard(c.lock);
  const auto after = c.ranges.upper_bound(at);
  if (size != kPage || offset != 0 || at % kPage != 0 || after == c.ranges.begin()) return kInvalid;
  const auto range = std::prev(after);
  if (at + size > range->first + range->second || !c.references.contains(handle) || c.maps.contains(at))
    return kInvalid;
  if (fails(c)) return abi::kOutOfMemory;
  c.maps[at] = handle;
  ++c.references[handle];
  ++c.counts.mapped;
  return abi::kSuccess;
}

abi::Result cuMemUnmap(abi::Pointer at, std::size_t size) {
  Card& c = card();
  const Guard guard(c.lock);
  if (size == 0 || size % kPage != 0) return kInvalid;
  for (const Kernel& kernel : c.queue)
    if (kernel.uses(at, size)) return kInvalid;  // on a card: an error that ends the context, or wrong bytes
  for (std::uint64_t page = at; page < at + size; page += kPage)
    if (!c.maps.contains(page)) return kInvalid;
  for (std::uint64_t page = at; page < at + size; page += kPage) {
    drop(c, c.maps.at(page));
    c.maps.erase(page);
    --c.counts.mapped;
  }
  constexpr int kEmpty = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return mmap(pointer(at), size, PROT_NONE, kEmpty, -1, 0) == MAP_FAILED ? kInvalid : abi::kSuccess;
}

abi::Result cuMemSetAccess(abi::Pointer at, std::size_t size, const abi::AccessDescription* who, std::size_t count) {
  Card& c = card();
  const Guard guard(c.lock);
  if (count != 1 || who->flags != abi::kReadWrite || size == 0 || size % kPage != 0) return kInvalid;
  for (std::uint64_t page = at; page < at + size; page += kPage) {
    const auto map = c.maps.find(page);
    if (map == c.maps.end()) return kInvalid;
    const auto offset = static_cast<off_t>(map->second - kPage);
    if (mmap(pointer(page), kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, c.file, offset) == MAP_FAILED)
      return kInvalid;
  }
  return abi::kSuccess;
}

abi::Result cuStreamCreate(abi::Stream* stream, unsigned) {
  *stream = reinterpret_cast<abi::Stream>(0x20);
  return contexts_here > 0 ? abi::kSuccess : kInvalid;
}
abi::Result cuStreamDestroy_v2(abi::Stream) { return abi::kSuccess; }
abi::Result cuStreamSynchronize(abi::Stream) { return contexts_here > 0 ? abi::kSuccess : kInvalid; }

// Drivers refuse a copy that begins in host memory locked by one call and ends beyond it, even if what follows is
// locked.
bool leaves_its_lock(const void* host, std::size_t size) {
  Card& c = card();
  const Guard guard(c.lock);
  const auto begin = reinterpret_cast<std::uint64_t>(host);
  auto found = c.pinned.upper_bound(begin);
  if (found == c.pinned.begin()) return false;
  --found;
  const std::uint64_t end = found->first + found->second;
  return begin < end && begin + size > end;
}

abi::Result cuMemcpyDtoHAsync_v2(void* into, abi::Pointer from, std::size_t size, abi::Stream) {
  if (contexts_here == 0 || leaves_its_lock(into, size)) return kInvalid;
  {
    const Guard guard(card().lock);
    ++card().counts.copies_out;
  }
  std::memcpy(into, pointer(from), size);
  return abi::kSuccess;
}
abi::Result cuMemcpyHtoDAsync_v2(abi::Pointer into, const void* from, std::size_t size, abi::Stream) {
  if (contexts_here == 0 || leaves_its_lock(from, size)) return kInvalid;
  std::memcpy(pointer(into), from, size);
  return abi::kSuccess;
}

abi::Result cuMemHostRegister_v2(void* host, std::size_t size, unsigned) {
  Card& c = card();
  const Guard guard(c.lock);
  if (contexts_here == 0 || c.pinned.contains(reinterpret_cast<std::uint64_t>(host))) return kInvalid;
  if (c.counts.pinned + size > c.to_pin) return abi::kOutOfMemory;
  c.pinned[reinterpret_cast<std::uint64_t>(host)] = size;
  c.counts.pinned += size;
  return abi::kSuccess;
}
abi::Result cuMemHostUnregister(void* host) {
  Card& c = card();
  const Guard guard(c.lock);
  const auto found = c.pinned.find(reinterpret_cast<std::uint64_t>(host));
  if (found == c.pinned.end()) return kInvalid;
  c.counts.pinned -= found->second;
  c.pinned.erase(found);
  return abi::kSuccess;
}

}  // extern "C"
