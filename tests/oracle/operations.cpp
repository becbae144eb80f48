// SPDX-License-Identifier: Apache-2.0
#include "cases.h"
#include "random.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::oracle {

namespace {

constexpr std::uint64_t kMib = 1u << 20;
constexpr std::uint64_t kGib = 1u << 30;

// Draws a power of two from 1 B to 512 MiB, all equally likely, then a size up to the next one. Uses no floating point,
// because its last digit may differ between machines.
std::uint64_t log_uniform(Random& random) {
  const std::uint64_t power = std::uint64_t{1} << random.below(30);
  return power + random.below(power);
}

// FNV-1a. It is mixed into the seed, so that different cases with one seed do not run the same program.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

// The sizes that a program asks for.
class Sizes final {
 public:
  Sizes(const Case& one, Random& random) : borders_(border_sizes(one.settings)), borders_only_(one.borders_only) {
    for (std::uint64_t& size : repeated_) size = log_uniform(random);
  }

  std::uint64_t next(Random& random) const {
    const std::uint64_t kind = random.below(6);
    if (borders_only_ || kind == 0) return random.pick(borders_);
    return kind < 3 ? random.pick(repeated_) : log_uniform(random);
  }

 private:
  std::array<std::uint64_t, 64> repeated_{};
  std::vector<std::uint64_t> borders_;
  bool borders_only_;
};

// Percentages of Case::live. The program aims at one of them for 500 operations, so that the cache fills and drains.
constexpr std::array<std::uint64_t, 6> kWanted{20, 60, 100, 100, 100, 115};

// More bytes than any device here has. From 2^60 on, the allocator refuses without trying.
constexpr std::array<std::uint64_t, 4> kHopeless{1ull << 41, (1ull << 60) - 1, 1ull << 60, 1ull << 62};

// Draws the operations, and keeps track of what the program holds and how much it wants to hold.
class Program final {
 public:
  Program(const Case& one, Random& random) : one_(one), random_(random), sizes_(one, random) {}

  Operation next(std::uint32_t index) {
    if (index % 500 == 0) wanted_ = (one_.live << 20) / 100 * random_.pick(kWanted);
    if (random_.chance(one_.empty_share)) return {};
    if (!live_.empty() && random_.chance(one_.record_share)) {
      return {0, live_[random_.below(live_.size())].first, Operation::Kind::RecordStream, stream()};
    }
    if (!live_.empty() && random_.chance(held_ < wanted_ ? 3500 : 6500)) return free();
    if (random_.chance(one_.hopeless_share)) {
      return {random_.pick(kHopeless), index, Operation::Kind::Allocate, stream()};
    }
    const Operation request{sizes_.next(random_), index, Operation::Kind::Allocate, stream()};
    live_.emplace_back(index, request.bytes);
    held_ += request.bytes;
    return request;
  }

 private:
  std::uint8_t stream() { return static_cast<std::uint8_t>(random_.below(one_.streams)); }

  // Frees the youngest block or a random one, each half of the time.
  Operation free() {
    const std::size_t at = random_.chance(5000) ? random_.below(live_.size()) : live_.size() - 1;
    const auto [block, bytes] = live_[at];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
    held_ -= bytes;
    return {0, block, Operation::Kind::Free, 0};
  }

  const Case& one_;
  Random& random_;
  Sizes sizes_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> live_;  // block and bytes, even if the allocation failed
  std::uint64_t held_ = 0;
  std::uint64_t wanted_ = 0;
};

}  // namespace

std::vector<std::uint64_t> border_sizes(const Settings& settings) {
  const std::uint64_t large = settings.large_segment.value_or(20);
  const std::uint64_t split = settings.max_split.value_or(64);
  const std::uint64_t rounding = settings.max_non_split_rounding.value_or(large);
  std::vector<std::uint64_t> borders{512, 1024, 4096, 32'768};
  // A block 1 MiB smaller than its segment leaves a rest of exactly 1 MiB. A request of max_split or more is served by
  // a free block only if that is less than `rounding` larger. Large sizes are rare, so that the device holds several.
  for (const std::uint64_t mib : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{9}, std::uint64_t{10},
                                  std::uint64_t{11}, std::uint64_t{12}, std::uint64_t{19}, std::uint64_t{20}, large - 1,
                                  large, large + 1, std::uint64_t{32}, split - 1, split, split + 1, split + rounding}) {
    borders.push_back(mib * kMib);
  }
  // Sizes up to 512 * divisions bytes are not rounded to a division. Above, sizes step by 1/divisions of a power of
  // two.
  for (const std::uint64_t divisions : settings.roundup) {
    borders.push_back(512 * divisions);
    for (const std::uint64_t power : {kMib, 8 * kMib, 256 * kMib, 512 * kMib})
      borders.push_back(power + power / divisions);
  }
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t border : borders) {
    for (const std::int64_t off : {-513, -512, -1, 0, 1, 512}) {
      const auto size = static_cast<std::int64_t>(border) + off;
      if (size > 0) sizes.push_back(static_cast<std::uint64_t>(size));
    }
    sizes.push_back(border);  // twice, so that exact borders are drawn twice as often
  }
  std::erase_if(sizes, [](std::uint64_t size) { return size > kGib; });
  return sizes;
}

std::vector<Operation> operations_of(const Case& one) {
  Random random(one.seed ^ hash_of(one.name + one.settings.text()));
  Program program(one, random);
  std::vector<Operation> operations;
  operations.reserve(one.operations);
  for (std::uint32_t i = 0; i < one.operations; ++i) operations.push_back(program.next(i));
  return operations;
}

}  // namespace ullage::oracle
