// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/lift.h"

#include <algorithm>
#include <variant>

namespace ullage::predict {

std::optional<Lift> highest(const trace::Take& take, const std::vector<Bytes>& live, std::span<const Slack> slack) {
  std::optional<Lift> best;
  for (const Slack& one : slack) {
    const trace::OpDetail& op = take.details[one.at.value];
    const auto begin = live.begin() + std::ptrdiff_t(op.begin.value);
    const auto end = live.begin() + std::ptrdiff_t(std::min(op.end, take.trace.end()).value);
    if (begin >= end) continue;
    const auto most = std::max_element(begin, end);
    const Lift lift{EventId{std::uint64_t(most - live.begin())}, one.at, *most, one.bytes};
    if (!best || best->live + best->bytes < lift.live + lift.bytes) best = lift;
  }
  return best;
}

trace::Trace with_slack(const trace::Take& take, std::span<const Slack> slack) {
  trace::Trace trace;
  trace.storages = take.trace.storages;
  trace.live_before = take.trace.live_before;
  std::vector<std::optional<StorageId>> by_op(take.details.size());
  for (const Slack& one : slack) {
    if (one.bytes == Bytes{} || one.bytes >= kNoBound) continue;
    by_op[one.at.value] = StorageId{trace.storages.size()};
    trace::Storage storage;
    storage.bytes = one.bytes;
    storage.op = one.at;
    trace.storages.push_back(storage);
  }
  trace.events.reserve(take.trace.events.size() + 2 * slack.size());
  for (const trace::Event& event : take.trace.events) {
    const auto* ended = std::get_if<trace::event::OpEnd>(&event.what);
    if (ended != nullptr && by_op[ended->op.value]) {
      trace.events.push_back({trace::event::Free{*by_op[ended->op.value]}, {}, {}});
    }
    trace.events.push_back(event);
    const auto* begun = std::get_if<trace::event::OpBegin>(&event.what);
    if (begun != nullptr && by_op[begun->op.value]) {
      trace.events.push_back({trace::event::Allocation{*by_op[begun->op.value]}, {}, {}});
    }
  }
  return trace;
}

}  // namespace ullage::predict
