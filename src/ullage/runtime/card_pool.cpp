// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/card_pool.h"

#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/headeronly/version.h>

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::runtime {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using c10::MempoolId_t;
using c10::Stream;

// PyTorch's rule for memory and streams, kept for a store that knows of none: a block belongs to the stream it was
// taken on, and may be handed to another one only behind the work that was given to the first. The store does not say
// which pages a new block gets, so a stream that takes one waits for each other stream on which anything was freed
// since it last did. The card waits, not the processor; a program of one stream never does.
class StreamOrder final {
 public:
  void taken(Address at, Stream on) {
    const std::lock_guard lock(lock_);
    for (auto& [other, freed] : freed_) {
      if (other == key(on) || freed.epoch == seen_[key(on)][other]) continue;
      c10::Event done(c10::DeviceType::CUDA);
      done.record(freed.stream);
      done.block(on);
      seen_[key(on)][other] = freed.epoch;
    }
    users_[at.value] = {on};
  }
  // Somebody uses it on another stream too (Tensor.record_stream).
  void used(Address at, Stream on) {
    const std::lock_guard lock(lock_);
    users_[at.value].push_back(on);
  }
  void freed(Address at) {
    const std::lock_guard lock(lock_);
    auto users = users_.extract(at.value);
    if (users.empty()) return;
    for (const Stream& user : users.mapped()) {
      Freed& here = freed_.try_emplace(key(user), Freed{user, 0}).first->second;
      ++here.epoch;
    }
  }

 private:
  using Key = c10::StreamId;
  static Key key(const Stream& stream) { return stream.id(); }
  struct Freed {
    Stream stream;
    std::uint64_t epoch;  // how many blocks were freed on it
  };
  std::mutex lock_;
  std::unordered_map<std::uint64_t, std::vector<Stream>> users_;  // by address
  std::map<Key, Freed> freed_;
  std::map<Key, std::map<Key, std::uint64_t>> seen_;  // the epochs of others that a stream waited for
};

class CardPool;
CardPool* installed = nullptr;

class CardPool final : public caching::CUDAAllocator {
 public:
  CardPool(caching::CUDAAllocator& before, store::Pager& pager, CardPoolSettings settings)
      : before_(before), pager_(pager), settings_(std::move(settings)) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (!is_ours(bytes)) return retry(bytes, [&] { return before_.allocate(bytes); });
    auto placed = pager_.allocate(Bytes{bytes});
    if (const auto* shortage = std::get_if<store::Shortage>(&placed))
      TORCH_CHECK_WITH(OutOfMemoryError, false, settings_.message(*shortage));
    const Address at = std::get<Address>(placed);
    order_.taken(at, c10::cuda::getCurrentCUDAStream(device()).unwrap());
    auto* const pointer = reinterpret_cast<void*>(at.value);
    return {pointer, pointer, &CardPool::free, c10::Device(c10::DeviceType::CUDA, device())};
  }

  // Without a tensor: libraries' workspaces. Their owners keep pointers, so they never move.
  void* raw_alloc(std::size_t bytes) override {
    return retry(bytes, [&] { return before_.raw_alloc(bytes); });
  }
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override {
    return retry(bytes, [&] { return before_.raw_alloc_with_stream(bytes, stream); });
  }
  void raw_delete(void* at) override { before_.raw_delete(at); }
  c10::DeleterFnPtr raw_deleter() const override { return before_.raw_deleter(); }

  void recordStream(const c10::DataPtr& at, c10::cuda::CUDAStream stream) override {
    if (at.get_deleter() != &CardPool::free) return before_.recordStream(at, stream);
    order_.used({reinterpret_cast<std::uint64_t>(at.get())}, stream.unwrap());
  }

  // Private pools, of graphs and of programs: everything taken meanwhile is for them.
  void beginAllocateToPool(DeviceIndex on, MempoolId_t pool, std::function<bool(cudaStream_t)> filter) override {
    private_pools_.fetch_add(1);
    before_.beginAllocateToPool(on, pool, std::move(filter));
  }
  void endAllocateToPool(DeviceIndex on, MempoolId_t pool) override {
    before_.endAllocateToPool(on, pool);
    private_pools_.fetch_sub(1);
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex on) override {
    c10::CachingDeviceAllocator::DeviceStats stats = before_.getDeviceStats(on);
    if (on != device()) return stats;
    const store::StoreCounts ours = pager_.store().counts();
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto add = [&](auto& stat, Bytes now, Bytes peak) {
      stat[all].current += static_cast<std::int64_t>(now.count);
      stat[all].peak += static_cast<std::int64_t>(peak.count);  // at most: the two need not fall together
    };
    add(stats.allocated_bytes, ours.live, ours.live_peak);
    add(stats.active_bytes, ours.live, ours.live_peak);
    add(stats.reserved_bytes, ours.resident, ours.resident_peak);
    return stats;
  }
  void emptyCache(MempoolId_t pool) override {
    before_.emptyCache(pool);
    if (settings_.give_way) settings_.give_way({});
  }

  void* getBaseAllocation(void* at, std::size_t* size) override {
    TORCH_CHECK(!pager_.store().owns({reinterpret_cast<std::uint64_t>(at)}),
                "a tensor whose bytes Ullage may move cannot be shared with another process; run without a budget");
    return before_.getBaseAllocation(at, size);
  }
  caching::ShareableHandle shareIpcHandle(void* at) override {
    std::size_t size = 0;
    getBaseAllocation(at, &size);
    return before_.shareIpcHandle(at);
  }

  // ---- handed on as they are
  void copy_data(void* to, const void* from, std::size_t bytes) const override { before_.copy_data(to, from, bytes); }
  bool initialized() override { return before_.initialized(); }
  void resetAccumulatedStats(DeviceIndex on) override { before_.resetAccumulatedStats(on); }
  void resetPeakStats(DeviceIndex on) override { before_.resetPeakStats(on); }
  void init(int devices) override { before_.init(devices); }
  double getMemoryFraction(DeviceIndex on) override { return before_.getMemoryFraction(on); }
  void setMemoryFraction(double part, DeviceIndex on) override { before_.setMemoryFraction(part, on); }
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
  // Torch asks for "native" and "cudaMallocAsync" by name, to choose its way.
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
  static void free(void* at) {
    const Address begin{reinterpret_cast<std::uint64_t>(at)};
    installed->order_.freed(begin);  // before its bytes can be another's
    installed->pager_.free(begin);
  }

  DeviceIndex device() const { return static_cast<DeviceIndex>(settings_.device); }

  bool is_ours(std::size_t bytes) const {
    return Bytes{bytes} >= settings_.least && private_pools_.load(std::memory_order_relaxed) == 0 &&
           c10::cuda::current_device() == device();
  }

  // No lock is held here: whoever gives way may wait for the card and for disks.
  template <class Allocate>
  auto retry(std::size_t bytes, const Allocate& allocate) -> decltype(allocate()) {
    for (;;) {
      try {
        return allocate();
      } catch (const c10::OutOfMemoryError&) {
        if (!settings_.give_way || !settings_.give_way(Bytes{bytes})) throw;
      }
    }
  }

  caching::CUDAAllocator& before_;
  store::Pager& pager_;
  const CardPoolSettings settings_;
  StreamOrder order_;
  std::atomic<int> private_pools_{0};
};

}  // namespace

Status install_card_pool(store::Pager& pager, CardPoolSettings settings) {
  if (installed != nullptr) return Error{Error::Kind::System, "a card's pool is installed in this process already", ""};
  installed = new CardPool(*caching::get(), pager, std::move(settings));
  caching::allocator.store(installed);
  // The native one registers above 0; a lower priority would be ignored without a word.
  c10::SetAllocator(c10::DeviceType::CUDA, installed, 255);
  return success();
}

}  // namespace ullage::runtime
