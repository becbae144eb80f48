// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/follower.h"

#include "ullage/base/sizes.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace ullage::sim {
namespace {

using Action = FollowingDevice::Action;

bool gives_back(const FollowingDevice::Step& step) {
  return step.action == Action::SegmentFreed || step.action == Action::SegmentUnmapped;
}

}  // namespace

Follower::Follower(const CachingSettings& settings, const std::vector<Layout::Segment>& before, Bytes device_total)
    : device_(device_total) {
  model_.emplace(settings, device_);
  for (const Layout::Segment& segment : before) {
    const std::vector<BlockId> blocks = model_->seed(segment);
    std::size_t block = 0;
    Address at = segment.address;
    for (const Layout::Piece& piece : segment.pieces) {
      if (piece.state == Layout::State::Live) live_.emplace(at.value, blocks[block++]);
      at = at + piece.size;
    }
  }
}

void Follower::follow(const std::vector<trace::RecordedEvent>& events) {
  for (event_ = 0; event_ < events.size(); ++event_)
    std::visit([&](const auto& event) { follow(event); }, events[event_].what);
  steps_.resize(leading_gives());  // later steps belong to a request that the recording does not show any more
  empty_cache();
}

std::size_t Follower::leading_gives() const {
  const auto end = std::find_if_not(steps_.begin(), steps_.end(), gives_back);
  return static_cast<std::size_t>(end - steps_.begin());
}

void Follower::empty_cache() {
  if (steps_.empty()) return;
  device_.expect(std::exchange(steps_, {}), event_, false);
  model_->empty_cache();
  device_.finish();
}

std::optional<BlockId> Follower::attempt(CachingAllocator& model, const Request& request, bool empty_first) {
  std::vector<FollowingDevice::Step> steps = steps_;
  if (empty_first) {
    const auto end = steps.begin() + static_cast<std::ptrdiff_t>(leading_gives());
    device_.expect({steps.begin(), end}, event_, false);
    model.empty_cache();
    device_.finish();
    steps.erase(steps.begin(), end);
  }
  device_.expect(steps, event_, !request.at);
  const auto outcome = model.allocate(request.bytes, request.stream);
  device_.finish();
  const auto* allocation = std::get_if<Allocation>(&outcome);
  const auto size = [&] { return to_string(request.bytes); };  // only for a difference: it is slow
  if (!allocation) {
    if (request.at)
      device_.diverge({event_, Bytes{}, Bytes{}, "alloc of " + size() + ", the model has no room for it", {}});
    return std::nullopt;
  }
  if (!request.at) {
    device_.diverge({event_, Bytes{}, Bytes{}, "oom at " + size() + ", the model has a block for it", {}});
  } else if (allocation->address != *request.at) {
    device_.diverge({event_, Bytes{}, Bytes{}, "alloc of " + size() + ", the model takes another block",
                     FollowingDevice::Difference::Places{*request.at, allocation->address}});
  }
  return allocation->block;
}

// If segments were given back before a request, either the program called empty_cache() or the allocator needed room. A
// recording does not say which. Both mostly give back the same segments, but the request may then find another block.
// So this tries "needed room" first on a copy, and empty_cache() if that differs.
std::optional<BlockId> Follower::serve(const Request& request) {
  const bool gives = leading_gives() > 0;
  if (gives && !difference()) {
    const FollowingDevice device = device_;
    CachingAllocator trial = *model_;
    const std::optional<BlockId> block = attempt(trial, request, false);
    if (!difference()) {
      model_.emplace(std::move(trial));
      steps_.clear();
      return block;
    }
    device_ = device;
  }
  const std::optional<BlockId> block = attempt(*model_, request, gives);
  steps_.clear();
  return block;
}

void Follower::follow(const trace::record::Allocation& event) {
  if (!plausible(event.address, event.bytes)) return;
  const std::optional<BlockId> block = serve({event.bytes, event.stream, event.address});
  if (block) live_.insert_or_assign(event.address.value, *block);
}

void Follower::follow(const trace::record::OutOfMemory& event) {
  if (!plausible(Address{}, event.requested)) return;
  const std::optional<BlockId> block = serve({event.requested, event.stream, std::nullopt});
  if (block) model_->free(*block);
}

void Follower::follow(const trace::record::FreeRequest& event) {
  empty_cache();
  const auto found = live_.find(event.address.value);
  if (found == live_.end()) return;
  model_->request_free(found->second);
  pending_.insert_or_assign(event.address.value, found->second);
  live_.erase(found);
}

void Follower::follow(const trace::record::Free& event) {
  empty_cache();
  if (const auto found = pending_.find(event.address.value); found != pending_.end()) {
    model_->complete_free(found->second);
    pending_.erase(found);
  } else if (const auto alive = live_.find(event.address.value); alive != live_.end()) {
    model_->free(alive->second);
    live_.erase(alive);
  }
}

}  // namespace ullage::sim
