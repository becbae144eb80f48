// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/following_device.h"

#include "ullage/base/sizes.h"

#include <utility>

namespace ullage::sim {
namespace {

using Action = AllocatorEvent::Action;

const char* name_of(Action action) {
  switch (action) {
    case Action::SegmentAllocated:
      return "segment_alloc";
    case Action::SegmentFreed:
      return "segment_free";
    case Action::SegmentMapped:
      return "segment_map";
    case Action::SegmentUnmapped:
      return "segment_unmap";
    default:
      return "event";
  }
}

bool gives_back(Action action) { return action == Action::SegmentFreed || action == Action::SegmentUnmapped; }

}  // namespace

void FollowingDevice::expect(const std::vector<Step>& steps, std::uint64_t event, bool refuse_rest) {
  steps_ = steps;
  at_ = 0;
  event_ = event;
  refuse_rest_ = refuse_rest;
}

void FollowingDevice::finish() {
  if (const Step* step = next(); step && !difference_) {
    difference_ = {
        step->event,
        step->bytes,
        Bytes{},
        std::string(name_of(step->action)) + " of " + to_string(step->bytes) + ", the model had no need of it",
        {}};
  }
  at_ = steps_.size();
}

// True if the next recorded step gives a segment back, because then the real device had refused. Also true if no step
// is left and the real request failed. False once there is a difference.
bool FollowingDevice::refuses() const {
  if (difference_) return false;
  return next() ? gives_back(next()->action) : refuse_rest_;
}

bool FollowingDevice::matches(Action action, Address at, Bytes size) {
  const Step* step = next();
  const bool same = step && step->action == action && step->address == at && step->bytes == size;
  if (same) {
    ++at_;
  } else {
    note(action, size);
  }
  return same;
}

void FollowingDevice::note(Action action, Bytes size) {
  if (difference_) return;
  const Step* step = next();
  const std::string model = std::string(name_of(action)) + " of " + to_string(size);
  if (!step) {
    difference_ = {event_, Bytes{}, size, "no segment was taken or given back, the model has " + model, {}};
    return;
  }
  const std::string other = step->action == action && step->bytes == size ? " at another address" : "";
  difference_ = {
      step->event,
      step->bytes,
      size,
      std::string(name_of(step->action)) + " of " + to_string(step->bytes) + ", the model has " + model + other,
      {}};
}

void FollowingDevice::diverge(Difference difference) {
  if (!difference_) difference_ = std::move(difference);
}

Address FollowingDevice::made_up(Bytes size) {
  const Address at = made_up_;
  made_up_ = made_up_ + size;
  return at;
}

std::optional<Address> FollowingDevice::allocate(Bytes size) {
  if (refuses() || size > kMost || made_up_ > kEnd) return std::nullopt;
  if (next() && matches(Action::SegmentAllocated, next()->address, size)) return steps_[at_ - 1].address;
  if (!next()) note(Action::SegmentAllocated, size);
  return made_up(size);
}

void FollowingDevice::free(Address at, Bytes size) { matches(Action::SegmentFreed, at, size); }

Address FollowingDevice::reserve(Bytes size) {
  if (next() && next()->action == Action::SegmentMapped && !difference_) return next()->address;
  return made_up(size);
}

bool FollowingDevice::commit(Address at, Bytes size) {
  if (refuses() || size > kMost) return false;
  matches(Action::SegmentMapped, at, size);
  return true;
}

void FollowingDevice::decommit(Address at, Bytes size) { matches(Action::SegmentUnmapped, at, size); }

}  // namespace ullage::sim
