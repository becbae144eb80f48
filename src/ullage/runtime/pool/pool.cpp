// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/pool.h"

#include "ullage/base/sizes.h"
#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/op_name.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ullage::runtime {
namespace {

// The deleter is a plain function and finds the pool here.
Pool* installed = nullptr;

Address address_of(void* at) { return {reinterpret_cast<std::uint64_t>(at)}; }
void* pointer_to(Address at) { return reinterpret_cast<void*>(at.value); }

// Returns " (inputs of 128.00 MiB, 64.00 MiB)", the largest first; empty if the interceptor sees no op here.
std::string tensors_in_flight() {
  constexpr std::size_t kMost = 6;
  const OpCall* op = Interceptor::current();
  if (op == nullptr || op->inputs.empty()) return {};
  std::vector<Bytes> sizes;
  for (const StorageUse& use : op->inputs) sizes.push_back(use.size);
  std::sort(sizes.rbegin(), sizes.rend());
  std::string text = " (inputs of ";
  for (std::size_t i = 0; i < std::min(sizes.size(), kMost); ++i) text += (i > 0 ? ", " : "") + to_string(sizes[i]);
  return text + (sizes.size() > kMost ? ", ...)" : ")");
}

}  // namespace

std::string op_in_flight() {
  const OpCall* op = Interceptor::current();
  return op != nullptr ? std::string(op->name) : op_on_the_stack();
}

Pool::Pool(store::Pager& pager, store::Budget& budget, PoolListener& listener, c10::Device device, Card card)
    : pager_(pager),
      budget_(budget),
      listener_(listener),
      device_(device),
      order_(device.is_cpu() ? nullptr : std::make_unique<StreamOrder>(device)),
      card_(card) {
  ULLAGE_CHECK(installed == nullptr, "there is a pool already");
  installed = this;
}

void Pool::install() {
  previous_deleter_ = c10::GetAllocator(c10::kCPU)->raw_deleter();
  c10::SetAllocator(c10::kCPU, this, /*priority=*/255);
}

c10::DataPtr Pool::allocate(std::size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &Pool::free, device_};
  const auto placed = pager_.allocate(Bytes{bytes});
  if (const auto* shortage = std::get_if<store::Shortage>(&placed)) refuse(*shortage, op_in_flight());
  void* at = pointer_to(std::get<Address>(placed));
  if (order_ != nullptr) order_->taken(address_of(at));
  tell_profiler(at, static_cast<std::int64_t>(bytes));
  listener_.allocated(address_of(at), Bytes{bytes});
  return {at, at, &Pool::free, device_};
}

c10::intrusive_ptr<c10::StorageImpl> Pool::storage_over(Address at, Bytes size) {
  void* bytes = pointer_to(at);
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size.count,
                                               c10::DataPtr{bytes, bytes, &Pool::free, device_}, this,
                                               /*resizable=*/false);
}

c10::DeleterFnPtr Pool::raw_deleter() const { return &Pool::free; }

void Pool::free(void* at) {
  if (at == nullptr) return;
  if (installed->pager_.store().owns(address_of(at))) return installed->give_back(at);
  installed->previous_deleter_(at);  // made before the pool was installed
}

void Pool::give_back(void* at) {
  if (in_child_ || listener_.freeing(address_of(at), /*may_stay=*/true)) return;
  if (order_ != nullptr) order_->freed(address_of(at));
  const Bytes bytes = pager_.free(address_of(at));
  tell_profiler(at, -static_cast<std::int64_t>(bytes.count));
}

void Pool::used(const void* at, const c10::Stream& on) {
  order_->used({reinterpret_cast<std::uint64_t>(at)}, on);
  card_.work->stream_used(on);
}

void Pool::theirs_made(Address at, Bytes size) {
  {
    const std::lock_guard lock(lock_);
    theirs_[at.value] = size;
  }
  listener_.allocated(at, size);
}

void Pool::theirs_goes(Address at) {
  if (in_child_) return;
  {
    const std::lock_guard lock(lock_);
    if (theirs_.erase(at.value) == 0) return;  // the block was made before the session began
  }
  listener_.freeing(at, /*may_stay=*/false);
}

bool Pool::knows(Address at) const {
  if (pager_.store().owns(at)) return true;
  if (device_.is_cpu()) return false;
  const std::lock_guard lock(lock_);
  return theirs_.contains(at.value);
}

std::vector<store::LiveStorage> Pool::live() const {
  std::vector<store::LiveStorage> all = pager_.store().live();
  const std::lock_guard lock(lock_);
  for (const auto& [at, size] : theirs_) all.push_back({{at}, size});
  return all;
}

void Pool::tell_profiler(void* at, std::int64_t change) const {
  if (!c10::memoryProfilingEnabled()) return;
  const store::StoreCounts counts = pager_.store().counts();
  c10::reportMemoryUsageToProfiler(at, change, counts.live.count, counts.resident.count, device_);
}

std::string Pool::message(const store::Shortage& shortage, const std::string& op) const {
  const store::Refusal& r = shortage.refusal;
  const std::string request = fmt::format("{} asked for {}; tensors hold {} live in {} resident", op,
                                          with_count(r.requested), with_count(r.live), with_count(r.resident));
  switch (r.reason) {
    case store::Refusal::Reason::AddressSpace:
      return request + "; no gap of the reserved address space is that large (see 'ulimit -v')";
    case store::Refusal::Reason::Device:
      return request + (device_.is_cpu()
                            ? "; the operating system refused more memory although the budget has room "
                              "(overcommit, ulimit, or too many mappings: vm.max_map_count)"
                            : "; the card has no more although the budget has room: other processes hold the rest");
    case store::Refusal::Reason::OverLimit:
      break;
  }
  const Bytes outside = budget_.outside_for_good();
  std::string text = request;
  if (!shortage.spill_failure.empty()) {
    text += "; other tensors could not be moved out: " + shortage.spill_failure;
  } else if (shortage.pinned > Bytes{}) {
    text += op == kOutsideOps
                ? fmt::format("; with what is in use now that is {} at once", with_count(shortage.at_once))
                : fmt::format("; the op needs {} at once{}", with_count(shortage.at_once), tensors_in_flight());
  }
  text += fmt::format("; of the budget of {} the pool may hold {}", with_count(budget_.stated()), with_count(r.limit));
  if (outside > budget_.expected_at_start()) {
    text += fmt::format("; memory outside the pool grew to {}, {} more than was reserved for it", with_count(outside),
                        to_string(outside - budget_.expected_at_start()));
  }
  return text + fmt::format("; a budget of {} would serve this request", with_count(least_for(shortage)));
}

Bytes Pool::least_for(const store::Shortage& shortage) const {
  const store::Refusal& r = shortage.refusal;
  const bool all_moves = shortage.can_move && shortage.spill_failure.empty();
  const bool lacks_room = r.needed > Bytes{};  // else something could not be read back
  if (all_moves || !lacks_room || r.reason != store::Refusal::Reason::OverLimit)
    return budget_.least_with(shortage.at_once);
  return r.needed + saturating_sub(budget_.stated(), r.limit);  // what cannot be moved out stays
}

void Pool::refuse(const store::Shortage& shortage, const std::string& op) const {
  // True if a storage could not be read back. The reason is then not a lack of room.
  const bool unreadable = shortage.refusal.limit == Bytes{} && !shortage.spill_failure.empty();
  const std::string text =
      unreadable ? fmt::format("out of memory: {} needs {} that were moved out and cannot be brought back: {}", op,
                               with_count(shortage.refusal.requested), shortage.spill_failure)
                 : "out of memory within the budget: " + message(shortage, op);
  listener_.refused(shortage, op, text);
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  std::abort();  // not reached: the line above throws
}

void Pool::refuse(const store::Refusal& refusal, const std::string& what) const {
  store::Shortage shortage;
  shortage.refusal = refusal;
  refuse(shortage, what);
}

}  // namespace ullage::runtime
