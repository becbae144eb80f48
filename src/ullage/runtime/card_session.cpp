// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/card_session.h"

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/find_symbol.h"
#include "ullage/base/sizes.h"
#include "ullage/base/threads.h"
#include "ullage/runtime/card/card_device.h"
#include "ullage/runtime/card/card_seam.h"
#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/pool/pool.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace ullage::runtime {
namespace {

// PyTorch's allocator serves the requests below CardSettings::least, within a limit that it is granted. Each time it
// reaches the limit, it first frees its cache and waits for the card. So that this is rare, the limit grows by at least
// kGrant at a time, or by kSegment if there is not so much room.
constexpr Bytes kGrant = 32_MiB;
constexpr Bytes kSegment = 2_MiB;  // PyTorch's allocator takes no less from the driver
constexpr std::uint64_t kAutoPercent = 95;

class CardSession final : public CardMemory {
 public:
  explicit CardSession(CardSettings settings) : settings_(std::move(settings)) {}

  Status put_in() {
    void* library = dlopen(settings_.allocator_library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr)
      return Error{Error::Kind::NotFound, std::string("Ullage's part for CUDA cannot be loaded: ") + dlerror(),
                   "--device"};
    PutBefore put_before = nullptr;
    if (!find_symbol(library, put_before, kPutBefore) || (torchs_ = put_before(*this)) == nullptr)
      return Error{Error::Kind::NotFound,
                   "Ullage was built against a torch without CUDA; build it against a CUDA build of torch", "--device"};
    return success();
  }

  int card() const override { return settings_.card; }
  Bytes least() const override { return settings_.least; }
  bool ready() override {
    if (state_.load(std::memory_order_acquire) == State::Ready) return true;
    State waiting = State::Waiting;
    if (!state_.compare_exchange_strong(waiting, State::Beginning)) return false;
    begin();
    state_.store(State::Ready, std::memory_order_release);
    return true;
  }

  c10::DataPtr allocate(Bytes size) override { return session_->pool().allocate(size.count); }
  bool owns(const void* at) const override {
    return state_.load(std::memory_order_acquire) == State::Ready &&
           session_->store().owns({reinterpret_cast<std::uint64_t>(at)});
  }
  void used(const void* at, const c10::Stream& on) override { session_->pool().used(at, on); }
  void theirs_made(const void* at, Bytes size) override {
    session_->pool().theirs_made({reinterpret_cast<std::uint64_t>(at)}, size);
  }
  void theirs_goes(const void* at) override { session_->pool().theirs_goes({reinterpret_cast<std::uint64_t>(at)}); }
  // Raises the limit of PyTorch's allocator for a request of `size` bytes. False: there is no room.
  bool give_way(Bytes size) override {
    const std::lock_guard lock(granting_);
    const Growing growing(grows_);
    // Part of what was granted may be unused, but too little for this request.
    const Bytes lacking = saturating_sub(torchs_->reserved() + round_up(size, kSegment), granted_);
    for (const Bytes more : {std::max(lacking, kGrant), std::max(lacking, kSegment)}) {
      if (!session_->grant(more)) continue;
      granted_ += more;
      torchs_->allow(granted_);
      return true;
    }
    return false;
  }
  void captures(bool begin) override {
    captures_.fetch_add(begin ? 1 : -1);
    session_->captures(begin);
  }
  void drop_idle() override { session_->drop_idle(); }
  store::StoreCounts counts() const override { return session_->store().counts(); }

 private:
  enum class State { Waiting, Beginning, Ready };
  // While this object exists, a thread makes room for PyTorch's allocator.
  struct Growing {
    explicit Growing(std::atomic<bool>& on) : grows(on) { grows.store(true); }
    ~Growing() { grows.store(false); }
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    std::atomic<bool>& grows;
  };

  // Empties the cache of PyTorch's allocator, lowers its limit to what it still holds, and returns by how many bytes.
  // Does nothing in two cases. While give_way() runs, perhaps on this very thread, granting_ is locked. While work is
  // captured (CUDA graphs), nothing may wait for the card, and emptying the cache does.
  Bytes take_back() {
    if (grows_.load() || captures_.load() > 0) return {};
    const std::lock_guard lock(granting_);
    torchs_->drop_cache();
    const Bytes unused = saturating_sub(granted_, std::max(torchs_->reserved(), held_at_start_));
    granted_ -= unused;
    if (unused > Bytes{}) torchs_->allow(granted_);
    return unused;
  }

  // Runs on the thread that allocates first. Other threads' allocations go to PyTorch's allocator meanwhile. No
  // `return settings_.failed(...)` comes back to the caller, because that function ends the process.
  void begin() {
    // A new thread has none of the program's modes, such as autocast. Torch keeps
    // handles of cuBLAS and cuDNN for each thread. When this thread ends, other threads may use its handles.
    make_thread([this] { wake_libraries(); }).join();
    torchs_->drop_cache();
    Result<std::unique_ptr<CardDevice>> device =
        CardDevice::open(settings_.card, settings_.host_memory, settings_.least, settings_.driver_library);
    if (!device) return settings_.failed(device.error());
    if (settings_.session.budget == Bytes{}) {
      const Result<cuda::Driver::Memory> memory = (*device)->memory();
      if (!memory) return settings_.failed(memory.error());
      settings_.session.budget = Bytes{(memory->free + (*device)->held()).count / 100 * kAutoPercent};
    }
    keep_group_limit(**device);
    if (settings_.begun) settings_.begun(settings_.session.budget);
    settings_.session.take_back = [this] { return take_back(); };
    Result<Session*> session = Session::start_on(settings_.session, std::move(*device));
    if (!session) return settings_.failed(session.error());
    session_ = *session;
    granted_ = held_at_start_ = torchs_->reserved();
    torchs_->allow(granted_);
  }

  // Lowers the budget to what the control groups allow of the card's memory.
  void keep_group_limit(CardDevice& device) {
    const std::optional<Bytes> limit = device.group_limit();
    if (!limit || *limit == Bytes{} || *limit >= settings_.session.budget) return;  // a budget of zero means none
    if (settings_.session.warn) {
      settings_.session.warn("the control group allows " + to_string(*limit) +
                             " of the card's memory (dmem.max), so the budget is that and not " +
                             to_string(settings_.session.budget));
    }
    settings_.session.budget = *limit;
  }

  // Makes libraries take their handles, workspaces and first kernels now, before the bytes on the card are counted.
  // These stay on the card for good.
  void wake_libraries() {
    try {
      const UnseenOps unseen;
      const c10::Device card(c10::kCUDA, static_cast<c10::DeviceIndex>(settings_.card));
      const c10::DeviceGuard here(card);
      const auto some = [&](at::IntArrayRef sizes) { return at::ones(sizes, at::TensorOptions(card)); };
      (void)at::mm(some({8, 8}), some({8, 8}));
      (void)at::conv2d(some({1, 8, 8, 8}), some({8, 8, 3, 3}));
    } catch (const std::exception&) {
      // The libraries then take them at their first use.
    }
  }

  CardSettings settings_;
  CardAllocator* torchs_ = nullptr;
  Session* session_ = nullptr;
  std::atomic<State> state_{State::Waiting};
  std::atomic<int> captures_{0};  // in progress
  std::atomic<bool> grows_{false};
  std::mutex granting_;  // guards the next two
  Bytes granted_;        // bytes that PyTorch's allocator may hold: its limit
  Bytes held_at_start_;  // bytes that it held when the budget began; its limit never falls below these
};

}  // namespace

Status await_card(CardSettings settings) {
  static CardSession* card = nullptr;
  ULLAGE_CHECK(card == nullptr, "a card is awaited in this process already");
  card = new CardSession(std::move(settings));  // never destroyed: in use until the process ends
  return card->put_in();
}

}  // namespace ullage::runtime
