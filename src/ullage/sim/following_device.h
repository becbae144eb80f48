// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device that does what the real one did at the same point of a recording: it hands out the recorded addresses, and
// refuses where the real allocator went on to give segments back. So a model's choices among addresses can be compared,
// although nobody can predict addresses. Where the model asks for something else than what was recorded, the first such
// step is noted, and from there on the device grants everything at addresses of its own.

#include "ullage/base/bytes.h"
#include "ullage/sim/allocator_event.h"
#include "ullage/sim/device.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::sim {

class FollowingDevice final : public Device {
 public:
  using Action = AllocatorEvent::Action;

  // What the real allocator asked of its device between two other events.
  struct Step {
    Action action = Action::SegmentAllocated;  // or SegmentFreed, SegmentMapped, SegmentUnmapped
    Address address;
    Bytes bytes;
    std::uint64_t event = 0;  // of the recording
  };
  struct Surprise {
    std::uint64_t event = 0;  // of the step that was expected, else of the event that the model was handling
    Bytes real;
    Bytes model;
    std::string what;
    // Where a request was placed; set when that is all that differs.
    struct Places {
      Address real;
      Address model;
    };
    std::optional<Places> places{};
  };

  explicit FollowingDevice(Bytes total) : total_(total) {}

  // The steps of the request that comes next. `event`: its own. `refuse_rest`: the real request failed after them.
  void expect(const std::vector<Step>& steps, std::uint64_t event, bool refuse_rest);
  // Notes a step that was expected and did not come.
  void finish();

  // From here on nothing is compared any more.
  void diverge(Surprise surprise);
  const std::optional<Surprise>& surprise() const { return surprise_; }

  Bytes total() const override { return total_; }
  Bytes available() const override { return total_; }
  std::optional<Address> allocate(Bytes size) override;
  void free(Address at, Bytes size) override;
  Address reserve(Bytes size) override;
  void unreserve(Address, Bytes) override {}
  bool commit(Address at, Bytes size) override;
  void decommit(Address at, Bytes size) override;

 private:
  static constexpr Bytes kMost{1ull << 40};   // of one step at addresses of its own
  static constexpr Address kEnd{1ull << 63};  // of made-up addresses

  const Step* next() const { return at_ < steps_.size() ? &steps_[at_] : nullptr; }
  bool refuses() const;
  bool matches(Action action, Address at, Bytes size);
  void note(Action action, Bytes size);
  Address made_up(Bytes size);

  Bytes total_;
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  std::uint64_t event_ = 0;
  bool refuse_rest_ = false;
  std::optional<Surprise> surprise_;
  Address made_up_{1ull << 61};  // above every recorded address
};

}  // namespace ullage::sim
