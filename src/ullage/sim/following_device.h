// SPDX-License-Identifier: Apache-2.0
#pragma once

// A device that does what the real one did at the same point of a recording. It hands out the recorded addresses, and
// refuses where the real allocator went on to give segments back. So the choices of a model can be compared with the
// real ones, although addresses cannot be predicted. If the model asks for something that was not recorded, the device
// notes this first difference. From then on it grants every request of at most 1 TiB, at a made-up address if the
// recorded one differs. A recording does not say how much was free, so available() is the whole device.

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

  // One thing that the real allocator asked of its device.
  struct Step {
    Action action = Action::SegmentAllocated;  // or SegmentFreed, SegmentMapped, SegmentUnmapped
    Address address;
    Bytes bytes;
    std::uint64_t event = 0;  // its number in the recording
  };
  // The first difference between the model and the recording.
  struct Difference {
    std::uint64_t event = 0;  // the recorded event that the model did not do, else the one that it was handling
    Bytes real;               // of the recorded step; zero if there is none
    Bytes model;              // of what the model asked for; zero if it asked for nothing
    std::string what;
    // Where the request was placed. Set only if nothing else differs.
    struct Places {
      Address real;
      Address model;
    };
    std::optional<Places> places{};
  };

  explicit FollowingDevice(Bytes total) : total_(total) {}

  // Sets the recorded steps of the next request. `event` is the number of the request. With `refuse_rest` the device
  // refuses whatever is asked after them, because the real request failed.
  void expect(const std::vector<Step>& steps, std::uint64_t event, bool refuse_rest);
  // Ends the request. If an expected step did not come, that is a difference.
  void finish();

  // Notes a difference that the caller found, unless there was one before. Nothing is compared from then on.
  void diverge(Difference difference);
  const std::optional<Difference>& difference() const { return difference_; }

  Bytes total() const override { return total_; }
  Bytes available() const override { return total_; }
  std::optional<Address> allocate(Bytes size) override;
  void free(Address at, Bytes size) override;
  Address reserve(Bytes size) override;
  void unreserve(Address, Bytes) override {}
  bool commit(Address at, Bytes size) override;
  void decommit(Address at, Bytes size) override;

 private:
  static constexpr Bytes kMost{1ull << 40};   // larger steps are refused
  static constexpr Address kEnd{1ull << 63};  // allocate() refuses once made-up addresses are above this

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
  std::optional<Difference> difference_;
  Address made_up_{1ull << 61};  // above every recorded address
};

}  // namespace ullage::sim
