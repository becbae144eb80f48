// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/card_work.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace ullage::runtime {
namespace {

// Ops between two points. A point is an event on every stream (card_work.h has a drawing), and an event costs about a
// microsecond of processor time.
constexpr int kOpsToAPoint = 16;
// Points whose events are kept. In place of an older point, done() waits for the oldest of these.
constexpr std::size_t kMostPoints = 256;

thread_local bool in_collective = false;

}  // namespace

void CardWork::op_ended() {
  const c10::Stream here = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  const Lock lock(lock_);
  add_stream(here);
  if (++ops_ >= kOpsToAPoint) (void)mark();
}

void CardWork::stream_used(const c10::Stream& stream) {
  const Lock lock(lock_);
  add_stream(stream);
}

void CardWork::add_stream(const c10::Stream& stream) {
  if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

bool CardWork::has_several_streams() {
  const Lock lock(lock_);
  return streams_.size() > 1;
}

void CardWork::captures(bool begin) {
  const Lock lock(lock_);
  captures_ += begin ? 1 : -1;
}

void CardWork::used(Address at, Bytes size) {
  const Lock lock(lock_);
  any_collective_ = any_collective_ || in_collective;
  // An op that only reads the bytes too need not have waited for the collective.
  const bool is_unseen = in_collective || (any_collective_ && uses_.last(at, size) == kUnseen);
  uses_.used(at, size, is_unseen ? kUnseen : next_);
}

CardWork::InCollective::InCollective(bool is_one) { in_collective = is_one; }
CardWork::InCollective::~InCollective() { in_collective = false; }

void CardWork::fresh(Address at, Bytes size) {
  const Lock lock(lock_);
  uses_.used(at, size, 0);
}

// Makes the next point, here and now. False: work is being captured, or the device takes no events.
bool CardWork::mark() {
  if (captures_ > 0 || broken_) return false;
  auto events = std::make_shared<Events>();
  try {
    for (const c10::Stream& stream : streams_) {
      events->emplace_back(device_.type());
      events->back().record(stream);
    }
  } catch (const std::exception&) {
    broken_ = true;  // the program itself meets the error later
    return false;
  }
  events_.push_back(std::move(events));
  ++next_;
  ops_ = 0;
  if (events_.size() > kMostPoints) {
    events_.pop_front();
    ++first_;
  }
  return true;
}

// False: no stream is known yet, or the work on these bytes cannot be waited for.
bool CardWork::done(Address at, Bytes size) {
  Lock lock(lock_);
  if (streams_.empty() || broken_) return false;
  const Point wanted = uses_.last(at, size).value_or(next_);
  if (wanted == kUnseen) return false;
  if (wanted <= done_) return true;
  if (wanted == next_ && !mark()) return false;
  const Point point = std::max(wanted, first_);
  const std::shared_ptr<const Events> events = events_[point - first_];
  lock.unlock();  // so that the program's ops go on
  try {
    for (const c10::Event& event : *events) event.synchronize();
  } catch (const std::exception&) {
    return false;
  }
  lock.lock();
  done_ = std::max(done_, point);
  return true;
}

}  // namespace ullage::runtime
