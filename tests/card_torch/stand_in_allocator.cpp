// SPDX-License-Identifier: Apache-2.0
// Replaces libullage_cuda.so for the stand-in card. Its allocator passes requests of memory_.least() and more to the
// runtime's pool and serves smaller ones itself, as PyTorch's allocator would. It reports what it reserves, plus a
// context of kContext, to the stand-in driver as held. So the driver's free bytes are what nvidia-smi would show. At
// exit, the peak of the bytes in use is written to the file that STAND_IN_CARD_PEAK names.
#include "ullage/base/bytes.h"
#include "ullage/runtime/card/card_seam.h"

#include "stand_in_card.h"
#include "stand_in_driver.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

namespace card_torch {
namespace {

using ullage::Bytes;
using ullage::operator""_MiB;

constexpr Bytes kContext = 40_MiB;
constexpr Bytes kSegment = 2_MiB;  // PyTorch's allocator asks the driver for no less

class Before final : public c10::Allocator, public ullage::runtime::CardAllocator {
 public:
  explicit Before(ullage::runtime::CardMemory& memory) : memory_(memory) { hold(); }

  Bytes reserved() override {
    const std::lock_guard lock(lock_);
    return reserved_;
  }
  void allow(Bytes most) override {
    const std::lock_guard lock(lock_);
    most_ = most;
  }
  void drop_cache() override {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (memory_.ready() && Bytes{bytes} >= memory_.least()) return memory_.allocate(Bytes{bytes});
    while (!take(Bytes{bytes})) {
      if (!memory_.ready() || !memory_.give_way(Bytes{bytes}))
        TORCH_CHECK_WITH(OutOfMemoryError, false, "the stand-in for PyTorch's allocator has no ", bytes, " bytes");
    }
    c10::DataPtr block = plain_allocator()->allocate(bytes);
    void* const at = block.get();
    {
      const std::lock_guard lock(lock_);
      blocks_[at] = {std::move(block), Bytes{bytes}};
    }
    if (at != nullptr && memory_.ready()) memory_.theirs_made(at, Bytes{bytes});
    return {at, at, &Before::free, {c10::kCUDA, 0}};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Before::free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  static Before* installed;

 private:
  struct Block {
    c10::DataPtr block;
    Bytes size;
  };

  bool take(Bytes size) {
    const std::lock_guard lock(lock_);
    const Bytes reserved = std::max(reserved_, ullage::round_up(used_ + size, kSegment));
    if (reserved > most_) return false;
    used_ += size;
    reserved_ = reserved;
    hold();
    return true;
  }
  void hold() { stand_in_hold((kContext + reserved_).count); }

  static void free(void* at) {
    if (installed->memory_.ready()) installed->memory_.theirs_goes(at);
    const std::lock_guard lock(installed->lock_);
    const auto found = installed->blocks_.find(at);
    if (found == installed->blocks_.end()) return;  // a request of 0 bytes
    installed->used_ -= found->second.size;
    installed->blocks_.erase(found);
  }

  ullage::runtime::CardMemory& memory_;
  std::mutex lock_;
  std::map<void*, Block> blocks_;
  Bytes used_, reserved_;
  Bytes most_{UINT64_MAX};
};

Before* Before::installed = nullptr;

void tell_peak() {
  if (const char* file = std::getenv("STAND_IN_CARD_PEAK")) std::ofstream(file) << stand_in_counts().shown_peak << '\n';
}

}  // namespace
}  // namespace card_torch

extern "C" ullage::runtime::CardAllocator* ullage_put_before_cuda(ullage::runtime::CardMemory& memory);

ullage::runtime::CardAllocator* ullage_put_before_cuda(ullage::runtime::CardMemory& memory) {
  card_torch::install();
  stand_in_reset(ullage::Bytes{8ull << 30}.count, ullage::Bytes{8ull << 30}.count);
  auto* const before = card_torch::Before::installed = new card_torch::Before(memory);
  c10::SetAllocator(c10::kCUDA, before, 255);
  std::atexit(&card_torch::tell_peak);
  return before;
}
