// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/spill_rates.h"

#include "ullage/store/spill_file.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace ullage::cli {
namespace {

constexpr Bytes kPiece = 4_MiB;      // about the size of a tensor
constexpr std::size_t kPieces = 16;  // at most
constexpr double kEnough = 0.1;      // seconds for writing, and as many for reading

// Returns bytes per second.
double rate(std::size_t pieces, double seconds) {
  return static_cast<double>(kPiece.count * pieces) / std::max(seconds, 1e-9);
}

Result<store::SpillSlot> write_piece(store::SpillFile& file, Address from) {
  ULLAGE_TRY_VALUE(const store::SpillSlot slot, file.take(kPiece));
  if (Status written = file.write(slot, from); !written) {
    file.give(slot);
    return written.error();
  }
  return slot;
}

}  // namespace

Result<plan::Rates> measure_rates(const store::SpillPlace& place, const std::function<double()>& now) {
  ULLAGE_TRY_VALUE(std::unique_ptr<store::SpillFile> opened, store::SpillFile::open(place, {.checksums = false}));
  store::SpillFile& file = *opened;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kPiece.count), &std::free);
  if (memory == nullptr) return Error{Error::Kind::System, "no memory to measure the spill folder with", place.folder};
  std::memset(memory.get(), 0x5a, kPiece.count);  // not zeros: a file system may leave a hole in their place
  const Address at{reinterpret_cast<std::uintptr_t>(memory.get())};

  // The first piece is written and read even if a stall before it takes longer than kEnough.
  std::vector<store::SpillSlot> slots;
  const double writing = now();
  while (slots.empty() || (slots.size() < kPieces && now() - writing < kEnough)) {
    const Result<store::SpillSlot> slot = write_piece(file, at);
    if (!slot && slots.empty()) return slot.error();
    if (!slot) break;
    slots.push_back(*slot);
  }
  plan::Rates rates;
  rates.write = rate(slots.size(), now() - writing);
  const double reading = now();
  std::size_t read = 0;
  while (read < slots.size() && (read == 0 || now() - reading < kEnough)) {
    ULLAGE_TRY(file.read(slots[read++], at));
  }
  rates.read = rate(read, now() - reading);
  for (const store::SpillSlot& slot : slots) file.give(slot);
  return rates;
}

Result<plan::Rates> measure_rates(const store::SpillPlace& place) {
  return measure_rates(
      place, [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); });
}

}  // namespace ullage::cli
