// SPDX-License-Identifier: Apache-2.0

// Puts an allocator before PyTorch's own on a card. Larger requests go to the runtime. PyTorch's allocator serves
// smaller requests, those of CUDA graphs and private pools, and those of libraries. When PyTorch's allocator runs out,
// the runtime makes room for it.
//
// Compiled into libullage_cuda.so, which is only loaded where libc10_cuda is.

#include "ullage/runtime/card/card_seam.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ullage::runtime {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using c10::MempoolId_t;

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

class AllocatorBefore final : public caching::CUDAAllocator, public CardAllocator {
 public:
  AllocatorBefore(caching::CUDAAllocator& before, CardMemory& memory) : before_(before), memory_(memory) {
    installed = this;
  }

  // ---- called by the runtime

  Bytes reserved() override {
    return Bytes{static_cast<std::uint64_t>(before_.getDeviceStats(card()).reserved_bytes[kAll].current)};
  }
  // PyTorch keeps its limit as a fraction of the card. 512 bytes more keep rounding from lowering the limit.
  void allow(Bytes most) override {
    const c10::cuda::CUDAGuard here(card());
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess || total == 0) return;
    const std::lock_guard lock(fractions_);
    allowed_ = static_cast<double>(most.count + 512) / static_cast<double>(total);
    before_.setMemoryFraction(std::min(allowed_, chosen_), card());
  }
  void drop_cache() override { before_.emptyCache({0, 0}); }

  // ---- called by PyTorch

  c10::DataPtr allocate(std::size_t bytes) override {
    const bool followed = is_ready() && private_pools_.load(std::memory_order_relaxed) == 0;
    if (followed && Bytes{bytes} >= memory_.least()) return memory_.allocate(Bytes{bytes});
    c10::DataPtr block = retry(bytes, [&] { return before_.allocate(bytes); });
    if (!followed || block.get() == nullptr) return block;
    void* const at = block.release_context();
    memory_.theirs_made(at, Bytes{bytes});
    return {at, at, &AllocatorBefore::free_theirs, block.device()};
  }

  // Memory without a tensor: libraries' workspaces. Their owners keep pointers, so they never move.
  void* raw_alloc(std::size_t bytes) override {
    return retry(bytes, [&] { return before_.raw_alloc(bytes); });
  }
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override {
    return retry(bytes, [&] { return before_.raw_alloc_with_stream(bytes, stream); });
  }
  void raw_delete(void* at) override { before_.raw_delete(at); }
  c10::DeleterFnPtr raw_deleter() const override { return before_.raw_deleter(); }

  void recordStream(const c10::DataPtr& at, c10::cuda::CUDAStream stream) override {
    if (memory_.owns(at.get())) return memory_.used(at.get(), stream.unwrap());
    if (at.get_deleter() != &AllocatorBefore::free_theirs) return before_.recordStream(at, stream);
    // PyTorch's allocator knows its own blocks by this deleter.
    c10::DataPtr as_theirs(at.get(), at.get(), before_.raw_deleter(), at.device());
    before_.recordStream(as_theirs, stream);
    as_theirs.release_context();
  }

  // Private pools, of CUDA graphs and of programs. Between the two calls PyTorch's allocator serves every request.
  void beginAllocateToPool(DeviceIndex on, MempoolId_t pool, std::function<bool(cudaStream_t)> filter) override {
    private_pools_.fetch_add(1);
    if (on == card() && begun_.load()) {
      captures_.fetch_add(1);
      memory_.captures(true);
    }
    before_.beginAllocateToPool(on, pool, std::move(filter));
  }
  void endAllocateToPool(DeviceIndex on, MempoolId_t pool) override {
    before_.endAllocateToPool(on, pool);
    if (on == card() && captures_.load() > 0) {
      captures_.fetch_sub(1);
      memory_.captures(false);
    }
    private_pools_.fetch_sub(1);
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex on) override {
    c10::CachingDeviceAllocator::DeviceStats stats = before_.getDeviceStats(on);
    if (on != card() || !begun_.load()) return stats;
    const store::StoreCounts ours = memory_.counts();
    const auto add = [&](auto& stat, Bytes now, Bytes peak) {
      stat[kAll].current += static_cast<std::int64_t>(now.count);
      stat[kAll].peak += static_cast<std::int64_t>(peak.count);  // an upper bound: the peaks may be at different times
    };
    add(stats.allocated_bytes, ours.live, ours.live_peak);
    add(stats.active_bytes, ours.live, ours.live_peak);
    add(stats.reserved_bytes, ours.resident, ours.resident_peak);
    return stats;
  }
  void emptyCache(MempoolId_t pool) override {
    before_.emptyCache(pool);
    if (begun_.load()) memory_.drop_idle();
  }

  // PyTorch's allocator gets the smaller of the program's fraction and the budget's. The program reads its own back.
  double getMemoryFraction(DeviceIndex on) override {
    const std::lock_guard lock(fractions_);
    return on == card() ? chosen_ : before_.getMemoryFraction(on);
  }
  void setMemoryFraction(double part, DeviceIndex on) override {
    if (on != card()) return before_.setMemoryFraction(part, on);
    const std::lock_guard lock(fractions_);
    before_.setMemoryFraction(std::min(allowed_, part), on);  // throws if it is below 0
    chosen_ = part;
  }

  void* getBaseAllocation(void* at, std::size_t* size) override {
    TORCH_CHECK(!memory_.owns(at),
                "a tensor whose bytes Ullage may move cannot be shared with another process; run without a budget");
    return before_.getBaseAllocation(at, size);
  }
  caching::ShareableHandle shareIpcHandle(void* at) override {
    std::size_t size = 0;
    getBaseAllocation(at, &size);
    return before_.shareIpcHandle(at);
  }

  // ---- calls that are passed on unchanged
  void copy_data(void* to, const void* from, std::size_t bytes) const override { before_.copy_data(to, from, bytes); }
  bool initialized() override { return before_.initialized(); }
  void resetAccumulatedStats(DeviceIndex on) override { before_.resetAccumulatedStats(on); }
  void resetPeakStats(DeviceIndex on) override { before_.resetPeakStats(on); }
  void init(int devices) override { before_.init(devices); }
  std::vector<caching::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex on) override {
    return before_.getExpandableSegmentSizes(on);
  }
  void enable(bool on) override { before_.enable(on); }
  bool isEnabled() const override { return before_.isEnabled(); }
  void cacheInfo(DeviceIndex on, std::size_t* largest) override { before_.cacheInfo(on, largest); }
  caching::SnapshotInfo snapshot(MempoolId_t pool, bool traces) override { return before_.snapshot(pool, traces); }
  void releasePool(DeviceIndex on, MempoolId_t pool) override { before_.releasePool(on, pool); }
  int getPoolUseCount(DeviceIndex on, MempoolId_t pool) override { return before_.getPoolUseCount(on, pool); }
  void createOrIncrefPool(DeviceIndex on, MempoolId_t pool, std::shared_ptr<CUDAAllocator> with) override {
    before_.createOrIncrefPool(on, pool, std::move(with));
  }
  void setUseOnOOM(DeviceIndex on, MempoolId_t pool, bool use) override { before_.setUseOnOOM(on, pool, use); }
  void setNoSplit(DeviceIndex on, MempoolId_t pool) override { before_.setNoSplit(on, pool); }
  bool checkPoolLiveAllocations(DeviceIndex on, MempoolId_t pool, const std::unordered_set<void*>& live) override {
    return before_.checkPoolLiveAllocations(on, pool, live);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override { return before_.getIpcDevPtr(std::move(handle)); }
  bool isHistoryEnabled() override { return before_.isHistoryEnabled(); }
  void recordHistory(bool enabled, caching::CreateContextFn context, std::size_t entries, caching::RecordContext when,
                     bool clear, const std::vector<std::string>& skip) override {
    before_.recordHistory(enabled, context, entries, when, clear, skip);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& words) override {
    before_.recordAnnotation(words);
  }
  void pushCompileContext(std::string& words) override { before_.pushCompileContext(words); }
  void popCompileContext() override { before_.popCompileContext(); }
  void setUserMetadata(const std::string& words) override { before_.setUserMetadata(words); }
  std::string getUserMetadata() override { return before_.getUserMetadata(); }
  void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) override {
    before_.attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(caching::AllocatorTraceTracker tracker) override {
    before_.attachAllocatorTraceTracker(std::move(tracker));
  }
  void enablePeerAccess(DeviceIndex from, DeviceIndex to) override { before_.enablePeerAccess(from, to); }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                          cudaStream_t stream, bool peers) override {
    return before_.memcpyAsync(to, to_device, from, from_device, bytes, stream, peers);
  }
  std::shared_ptr<caching::AllocatorState> getCheckpointState(DeviceIndex on, MempoolId_t pool) override {
    return before_.getCheckpointState(on, pool);
  }
  caching::CheckpointDelta setCheckpointPoolState(DeviceIndex on,
                                                  std::shared_ptr<caching::AllocatorState> state) override {
    return before_.setCheckpointPoolState(on, std::move(state));
  }
  // Torch compares the name with "native" and "cudaMallocAsync" to choose its code path.
  std::string name() override { return before_.name(); }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12
  void attachOomRejectionObserver(caching::OomRejectionObserver observer) override {
    before_.attachOomRejectionObserver(std::move(observer));
  }
#endif
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
  void markCaptureBegin(DeviceIndex on) override { before_.markCaptureBegin(on); }
  void markCaptureEnd(DeviceIndex on) override { before_.markCaptureEnd(on); }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* at) override {
    return before_.getContextForPointer(at);
  }
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* at) override {
    return before_.allocateWithAddress(bytes, at);
  }
#endif

 private:
  static inline AllocatorBefore* installed = nullptr;  // a deleter is a plain function

  static void free_theirs(void* at) {
    installed->memory_.theirs_goes(at);
    installed->before_.raw_delete(at);
  }

  DeviceIndex card() const { return static_cast<DeviceIndex>(memory_.card()); }

  // Is the budget's card current on this thread, and has its budget begun? The first call begins it.
  bool is_ready() {
    if (c10::cuda::current_device() != card() || !memory_.ready()) return false;
    begun_.store(true, std::memory_order_relaxed);
    return true;
  }

  // Tries again as long as the runtime makes room. No lock is held here: making room may wait for the card and disks.
  template <class Allocate>
  auto retry(std::size_t bytes, const Allocate& allocate) -> decltype(allocate()) {
    for (;;) {
      try {
        return allocate();
      } catch (const c10::OutOfMemoryError&) {
        if (!is_ready() || !memory_.give_way(Bytes{bytes})) throw;
      }
    }
  }

  caching::CUDAAllocator& before_;
  CardMemory& memory_;
  std::atomic<int> private_pools_{0};
  std::atomic<int> captures_{0};  // the private pools for which captures() was called
  std::atomic<bool> begun_{false};
  std::mutex fractions_;
  double allowed_ = 1.0;  // by the budget
  double chosen_ = 1.0;   // by the program
};

// Switches on PyTorch's expandable segments, which leave fewer holes, unless the person has chosen allocator settings.
void prefer_expandable_segments() {
  for (const char* variable : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    if (std::getenv(variable) != nullptr) return;
  }
  caching::setAllocatorSettings("expandable_segments:True");
}

}  // namespace
}  // namespace ullage::runtime

extern "C" ullage::runtime::CardAllocator* ullage_put_before_cuda(ullage::runtime::CardMemory& memory) {
  using ullage::runtime::AllocatorBefore;
  ullage::runtime::prefer_expandable_segments();
  auto* const ours = new AllocatorBefore(*ullage::runtime::caching::get(), memory);  // in use until the process ends
  ullage::runtime::caching::allocator.store(ours);
  // PyTorch's allocator registers with a priority above 0; torch silently ignores an allocator of lower priority.
  c10::SetAllocator(c10::DeviceType::CUDA, ours, 255);
  return ours;
}
