// SPDX-License-Identifier: Apache-2.0
#include "stand_in_card.h"

#include "card_parts.h"

#include <c10/core/alignment.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace card_torch {
namespace {

// Each block is preceded by its size.
constexpr std::size_t kHeader = c10::gAlignment;

void free_block(void* block) {
  if (block == nullptr) return;
  auto* const begin = static_cast<char*>(block) - kHeader;
  std::uint64_t size = 0;
  std::memcpy(&size, begin, sizeof size);
  counters().live_bytes -= size;
  std::free(begin);
}

class PlainAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free_block, kCard};
    void* begin = nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, posix_memalign(&begin, c10::gAlignment, kHeader + bytes) == 0,
                     "the stand-in card found no memory for ", bytes, " bytes");
    const std::uint64_t size = bytes;
    std::memcpy(begin, &size, sizeof size);
    const std::uint64_t live = counters().live_bytes += size;
    for (std::uint64_t peak = counters().live_bytes_peak; peak < live;)
      if (counters().live_bytes_peak.compare_exchange_weak(peak, live)) break;
    void* const block = static_cast<char*>(begin) + kHeader;
    return {block, block, &free_block, kCard};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

Counters& counters() {
  static auto* made = new Counters{};  // never freed, because tensors may outlive main
  return *made;
}

c10::Allocator* plain_allocator() {
  static auto* made = new PlainAllocator;
  return made;
}

Counts counts() {
  const Counters& c = counters();
  return {c.live_bytes,       c.live_bytes_peak, c.ops, c.draws, c.events_recorded, c.events_blocked,
          c.synchronizations, c.streams_recorded};
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::SetAllocator(c10::DeviceType::CUDA, plain_allocator());
    register_guard();
    register_hooks();
    register_recurrent();
    register_kernels();
  });
}

}  // namespace card_torch
