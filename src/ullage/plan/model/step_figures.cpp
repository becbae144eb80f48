// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/step_figures.h"

#include "ullage/sim/pool_model.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace ullage::plan {
namespace {

// Returns how many resident bytes more than live bytes the pool needs at its peak. Its model serves the storages that
// live when the step begins, then the step's requests in order.
Bytes pool_overhead(const trace::Trace& trace, const StepRange& range, const StandsOn& on) {
  sim::PoolModel pool;
  std::unordered_map<std::uint64_t, Address> places;
  std::uint64_t asked = 0, asked_peak = 0;
  const auto born = [&](StorageId id) {
    const Bytes bytes = trace.storages[id.value].bytes;
    if (bytes == Bytes{} || bytes < on.least_in_pool) return;
    places[id.value] = pool.allocate(bytes);
    asked_peak = std::max(asked_peak, asked += bytes.count);
  };
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const trace::Storage& one = trace.storages[i];
    if ((one.from_before || one.born < range.begin) && one.died >= range.begin) born(StorageId{i});
  }
  for (std::uint64_t e = range.begin.value; e < range.end.value; ++e) {
    if (const auto* birth = std::get_if<trace::event::Allocation>(&trace.events[e].what)) {
      born(birth->storage);
    } else if (const auto* death = std::get_if<trace::event::Free>(&trace.events[e].what)) {
      const auto place = places.find(death->storage.value);
      if (place == places.end()) continue;
      pool.free(place->second);
      places.erase(place);
      asked -= trace.storages[death->storage.value].bytes.count;
    }
  }
  return saturating_sub(pool.resident_peak(), Bytes{asked_peak});
}

// The most bytes that autograd keeps at once. Counts only storages that ops of the step's forward pass made.
Bytes saved_peak(const trace::Trace& trace, const StepRange& range, const Step& step) {
  std::unordered_map<std::uint64_t, std::uint64_t> kept;  // StorageId to how often it is saved now
  for (const StepOp& op : step.ops) {
    if (op.phase != trace::Phase::Forward) continue;
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) {
      kept[step.storages[step.values[op.makes[i]].storage].in_take.value] = 0;
    }
  }
  std::uint64_t now = 0, most = 0;
  const auto release = [&](StorageId id, bool all) {
    const auto one = kept.find(id.value);
    if (one == kept.end() || one->second == 0) return;
    one->second = all ? 0 : one->second - 1;
    if (one->second == 0) now -= trace.storages[id.value].bytes.count;
  };
  for (std::uint64_t e = range.begin.value; e < range.end.value; ++e) {
    const auto& what = trace.events[e].what;
    if (const auto* save = std::get_if<trace::event::Save>(&what)) {
      const auto one = kept.find(save->storage.value);
      if (one == kept.end() || ++one->second > 1) continue;
      most = std::max(most, now += trace.storages[save->storage.value].bytes.count);
    } else if (const auto* unsave = std::get_if<trace::event::Unsave>(&what)) {
      release(unsave->storage, false);
    } else if (const auto* death = std::get_if<trace::event::Free>(&what)) {
      release(death->storage, true);
    }
  }
  return Bytes{most};
}

}  // namespace

Bytes plain_peak(const Step& step) {
  Bytes level = step.level, peak = level;
  const auto bytes = [&](StorageIndex one) { return step.storages[one].bytes; };
  for (const GapIndex k : step.gaps.ids()) {
    for (const GapEvent& event : step.gaps[k]) {
      event.born ? level += bytes(event.storage) : level -= bytes(event.storage);
      peak = std::max(peak, level);
    }
    if (!step.ops.has(op_after(k))) break;
    const StepOp& op = step.ops[op_after(k)];
    peak = std::max(peak, level + op.rise);
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) {
      level += bytes(step.values[op.makes[i]].storage);
    }
    for (const StorageIndex one : op.hides) level += bytes(one);
    peak = std::max(peak, level);
  }
  return peak;
}

Seconds length_of(const trace::TakeIndex& index, const StepRange& range) {
  const std::vector<trace::Event>& events = index.take.trace.events;
  const std::uint64_t last = std::min<std::uint64_t>(range.end.value, events.size() - 1);
  const auto begin = events[range.begin.value].at, end = events[last].at;
  if (!begin || !end || *end < *begin) return {};
  return {double(end->count - begin->count) * 1e-6};
}

void add_figures(const trace::TakeIndex& index, const StepRange& range, const StandsOn& on, Step& step) {
  const trace::Trace& trace = index.take.trace;
  step.peak = plain_peak(step);
  step.overhead = pool_overhead(trace, range, on);
  step.outside = std::max(index.take.process.outside_peak, index.take.process.outside_expected);
  step.saved = saved_peak(trace, range, step);
  step.seconds = length_of(index, range);
  step.in_ops = {};
  for (const StepOp& op : step.ops) step.in_ops.count += op.took.count;
}

}  // namespace ullage::plan
