// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool.h"

#include "ullage/base/sizes.h"
#include "ullage/runtime/op_name.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <utility>

namespace ullage::runtime {
namespace {

// The deleter is a plain function, so it finds the pool here. Set once by install().
Pool* installed = nullptr;

Address address_of(void* at) { return {reinterpret_cast<std::uint64_t>(at)}; }
void* pointer_to(Address at) { return reinterpret_cast<void*>(at.value); }

}  // namespace

Pool::Pool(store::Store& store, store::Budget& budget, OnRefusal on_refusal)
    : store_(store), budget_(budget), on_refusal_(std::move(on_refusal)) {}

void Pool::install() {
  ULLAGE_CHECK(installed == nullptr, "a pool is installed already");
  previous_deleter_ = c10::GetAllocator(c10::kCPU)->raw_deleter();
  installed = this;
  c10::SetAllocator(c10::kCPU, this, /*priority=*/255);
}

c10::DataPtr Pool::allocate(std::size_t bytes) {
  const c10::Device cpu(c10::kCPU);
  if (bytes == 0) return {nullptr, nullptr, &Pool::free, cpu};
  // Here the pager will make room and try again; today a refusal is final.
  const auto placed = store_.allocate(Bytes{bytes});
  if (const auto* refusal = std::get_if<store::Refusal>(&placed)) refuse(*refusal, op_on_the_stack());
  void* at = pointer_to(std::get<Address>(placed));
  tell_profiler(at, static_cast<std::int64_t>(bytes));
  return {at, at, &Pool::free, cpu};
}

c10::DeleterFnPtr Pool::raw_deleter() const { return &Pool::free; }

void Pool::free(void* at) {
  if (at == nullptr) return;
  if (!installed->store_.owns(address_of(at))) {  // made before the pool was put in
    installed->previous_deleter_(at);
    return;
  }
  const Bytes bytes = installed->store_.free(address_of(at));
  installed->tell_profiler(at, -static_cast<std::int64_t>(bytes.count));
}

void Pool::tell_profiler(void* at, std::int64_t change) const {
  if (!c10::memoryProfilingEnabled()) return;
  const store::StoreCounts counts = store_.counts();
  c10::reportMemoryUsageToProfiler(at, change, counts.live.count, counts.resident.count, c10::Device(c10::kCPU));
}

std::string Pool::message(const store::Refusal& r, const std::string& op) const {
  const std::string request = fmt::format("{} asked for {}; tensors hold {} live in {} resident", op,
                                          with_count(r.requested), with_count(r.live), with_count(r.resident));
  switch (r.reason) {
    case store::Refusal::Reason::AddressSpace:
      return request + "; no gap of the reserved address space is that large (see 'ulimit -v')";
    case store::Refusal::Reason::Device:
      return request +
             "; the operating system refused more memory although the budget has room "
             "(overcommit, ulimit, or too many mappings: vm.max_map_count)";
    case store::Refusal::Reason::OverLimit:
      break;
  }
  const Bytes taken_off = saturating_sub(budget_.stated(), r.limit);
  const Bytes outside = budget_.outside();
  const std::string grew = outside > budget_.expected_outside()
                               ? fmt::format("; memory outside the pool grew to {}, {} more than set aside for it",
                                             with_count(outside), to_string(outside - budget_.expected_outside()))
                               : std::string();
  return fmt::format("{}; of the budget of {} the pool may hold {}{}; a budget of {} would serve this request", request,
                     with_count(budget_.stated()), with_count(r.limit), grew, with_count(r.needed + taken_off));
}

void Pool::refuse(const store::Refusal& refusal, const std::string& op) const {
  const std::string text = "out of memory within the budget: " + message(refusal, op);
  if (on_refusal_) on_refusal_(refusal, op, text);
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  std::abort();  // not reached: the line above throws
}

}  // namespace ullage::runtime
