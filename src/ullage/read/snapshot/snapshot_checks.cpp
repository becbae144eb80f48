// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ullage::read {
namespace {

constexpr std::uint64_t kLinesPerKind = 3;
constexpr std::uint64_t kBlockUnit = 512;  // bytes; kMinBlockSize of c10/cuda/CUDACachingAllocator.cpp

// One kind of contradiction: the first kLinesPerKind cases as text, the others only counted.
class Contradiction final {
 public:
  explicit Contradiction(std::string several) : several_(std::move(several)) {}

  template <class... Parts>
  void met(fmt::format_string<Parts...> format, Parts&&... parts) {
    if (++count_ <= kLinesPerKind) lines_.push_back(fmt::format(format, std::forward<Parts>(parts)...));
  }
  void tell(std::vector<std::string>& lines) const {
    lines.insert(lines.end(), lines_.begin(), lines_.end());
    if (count_ > kLinesPerKind) lines.push_back(fmt::format("and {} more {}", count_ - kLinesPerKind, several_));
  }

 private:
  std::string several_;
  std::uint64_t count_ = 0;
  std::vector<std::string> lines_;
};

struct Contradictions {
  Contradiction sum{"segments whose blocks do not add up"};
  Contradiction place{"blocks that do not follow the one before"};
  Contradiction stated{"sums of segments that their blocks contradict"};
  Contradiction unit{"blocks whose sizes are not multiples of 512"};
  Contradiction larger{"blocks smaller than what was requested"};
  Contradiction overlap{"segments that overlap"};
};

// Sums of sizes cannot overflow, thanks to SnapshotLimits::total_bytes.
void check_segment(const trace::Segment& segment, Contradictions& kinds) {
  Bytes all, allocated, active, requested;
  Address expected = segment.address;
  for (const trace::Block& block : segment.blocks) {
    all += block.size;
    if (block.address != expected) {
      kinds.place.met("block at {:#x}: expected at {:#x}", block.address.value, expected.value);
    }
    expected = block.address + block.size;
    if (block.size.count % kBlockUnit != 0) {
      kinds.unit.met("block at {:#x}: {} bytes are not a multiple of 512", block.address.value, block.size.count);
    }
    if (block.state == trace::Block::State::Inactive) continue;
    if (block.state == trace::Block::State::Active) allocated += block.size;
    active += block.size;
    requested += block.requested;
    if (block.requested > block.size) {
      kinds.larger.met("block at {:#x}: {} bytes were requested, it has {}", block.address.value, block.requested.count,
                       block.size.count);
    }
  }
  const auto place = segment.address.value;
  if (all != segment.size) {
    kinds.sum.met("segment at {:#x}: its blocks add up to {} bytes, its total_size is {}", place, all.count,
                  segment.size.count);
  }
  const auto compare = [&](const char* name, Bytes stated, Bytes counted) {
    if (stated == counted) return;
    kinds.stated.met("segment at {:#x}: its {} is {}, its blocks say {}", place, name, stated.count, counted.count);
  };
  compare("allocated_size", segment.allocated, allocated);
  compare("active_size", segment.active, active);
  compare("requested_size", segment.requested, requested);
}

}  // namespace

std::vector<std::string> inconsistencies(const std::vector<trace::DeviceRecording>& devices) {
  Contradictions kinds;
  for (const trace::DeviceRecording& device : devices) {
    Address end;
    for (const trace::Segment& segment : device.segments) {
      if (segment.address < end) {
        kinds.overlap.met("segment at {:#x} on device {}: the one before ends at {:#x}", segment.address.value,
                          device.device, end.value);
      }
      end = std::max(end, segment.address + segment.size);
      check_segment(segment, kinds);
    }
  }
  std::vector<std::string> lines;
  for (const Contradiction* kind :
       {&kinds.sum, &kinds.place, &kinds.stated, &kinds.unit, &kinds.larger, &kinds.overlap}) {
    kind->tell(lines);
  }
  return lines;
}

}  // namespace ullage::read
