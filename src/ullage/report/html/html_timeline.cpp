// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace ullage::report {
namespace {

using trace::Storage;

constexpr std::size_t kStacked = 15;       // owners with a band of their own
constexpr std::size_t kListed = 300;       // owners with a name
constexpr std::size_t kStorages = 60'000;  // storages that are drawn in segments

std::uint64_t from_moment(const Storage& storage) { return storage.from_before ? 0 : storage.born.value + 1; }
std::uint64_t to_moment(const Storage& storage) { return storage.died.value + 1; }

// The sizes of a damaged file may exceed 2^64 in sum.
Bytes saturating_sum(Bytes a, Bytes b) { return {a.count > UINT64_MAX - b.count ? UINT64_MAX : a.count + b.count}; }

// A storage that comes or goes.
struct Change {
  std::uint64_t moment = 0;
  std::uint32_t owner = 0;
  bool comes = false;
  Bytes bytes;
};

// The owners, in the order in which they first occur, and all changes of their levels.
class OwnerLevels {
 public:
  explicit OwnerLevels(const InputHistory& history) {
    const trace::Trace& trace = history.trace();
    const std::vector<trace::StackMeaning>& meanings = history.known.meanings;
    const std::vector<trace::Category>& categories = history.known.categories;
    std::map<std::pair<trace::Category, std::string>, std::uint32_t> known;
    std::unordered_map<std::uint64_t, std::uint32_t> known_by_stack;  // so that most storages need no lookup by name
    std::vector<Bytes> largest;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
      const Storage& storage = trace.storages[i];
      const bool unseen_birth = storage.from_before && storage.stack == trace::StackId{};
      const std::uint64_t key = storage.stack.value * std::uint64_t{32} +
                                static_cast<std::uint64_t>(categories[i]) * 2 + (unseen_birth ? 1 : 0);
      const auto [place, is_new] = known_by_stack.try_emplace(key);
      if (is_new) {
        const std::string name(trace::owner_name(storage, meanings));
        place->second =
            known.try_emplace({categories[i], name}, static_cast<std::uint32_t>(known.size())).first->second;
        if (place->second == owners.size()) owners.push_back({name, categories[i], storage.stack, {}});
      }
      const std::uint32_t owner = place->second;
      if (owner == largest.size()) largest.push_back(storage.bytes);
      if (storage.bytes > largest[owner]) largest[owner] = storage.bytes, owners[owner].stack = storage.stack;
      of_storage.push_back(owner);
      changes.push_back({from_moment(storage), owner, true, storage.bytes});
      if (to_moment(storage) <= trace.events.size()) {
        changes.push_back({to_moment(storage), owner, false, storage.bytes});
      }
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.moment < b.moment; });
  }

  // Calls visit(levels by owner) at each of the ascending moments, and updates the highest level of each owner.
  template <class Visit>
  void walk(const std::vector<std::uint64_t>& moments, const Visit& visit) {
    std::vector<Bytes> now(owners.size());
    std::size_t next = 0;
    for (const std::uint64_t moment : moments) {
      for (; next < changes.size() && changes[next].moment <= moment; ++next) {
        const Change& change = changes[next];
        Bytes& level = now[change.owner];
        // The sort is stable, so a storage that dies at its birth first comes and then goes.
        level = change.comes ? saturating_sum(level, change.bytes) : saturating_sub(level, change.bytes);
        owners[change.owner].most = std::max(owners[change.owner].most, level);
      }
      visit(now);
    }
  }

  std::vector<TimelineOwner> owners;
  std::vector<std::uint32_t> of_storage;  // index: StorageId
  std::vector<Change> changes;
};

std::uint64_t moment_of(const std::optional<EventId>& event) { return event ? event->value + 1 : 0; }

int restlessness(trace::Category category) {
  using trace::Category;
  constexpr std::array kFromStill = {Category::Parameters,  Category::OptimizerState, Category::Buffers,
                                     Category::Library,     Category::Unattributed,   Category::WeightCopies,
                                     Category::Gradients,   Category::Inputs,         Category::Activations,
                                     Category::Temporaries, Category::Workspace};
  return static_cast<int>(std::find(kFromStill.begin(), kFromStill.end(), category) - kFromStill.begin());
}

// Orders the owners by their bytes at the peak, or by half of their highest level if that is more.
std::vector<std::uint32_t> by_importance(OwnerLevels& all, std::uint64_t peak) {
  std::vector<Bytes> weight(all.owners.size());
  std::vector<std::uint64_t> ends = {peak, UINT64_MAX};
  bool at_peak = true;
  all.walk(ends, [&](const std::vector<Bytes>& now) {
    if (std::exchange(at_peak, false)) weight = now;
  });
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::max(weight[i], all.owners[i].most / 2);
  std::vector<std::uint32_t> order(all.owners.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return weight[a] > weight[b]; });
  // Orders the bands so that owners which rarely change are at the bottom, where their edges stay level.
  const auto last_band = order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), kStacked));
  std::stable_sort(order.begin(), last_band, [&](auto a, auto b) {
    return restlessness(all.owners[a].category) < restlessness(all.owners[b].category);
  });
  return order;
}

void add_levels(OwnerLevels& all, const std::vector<std::uint32_t>& rank, Timeline& timeline) {
  timeline.levels.assign(timeline.stacked + 1, {});
  all.walk(timeline.moments, [&](const std::vector<Bytes>& now) {
    std::vector<Bytes> sums(timeline.stacked + 1);
    for (std::size_t i = 0; i < now.size(); ++i) {
      Bytes& sum = sums[std::min<std::size_t>(rank[i], timeline.stacked)];
      sum = saturating_sum(sum, now[i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) timeline.levels[i].push_back(sums[i]);
  });
}

bool is_at(const Storage& storage, std::uint64_t moment) {
  return from_moment(storage) <= moment && moment < to_moment(storage);
}

// Adds the storages. If there are more than kStorages, takes first those of the moments that a person looks at first,
// then the largest.
void add_storages(const trace::Trace& trace, const OwnerLevels& all, const std::vector<std::uint32_t>& rank,
                  Timeline& timeline) {
  std::vector<std::uint32_t> chosen(trace.storages.size());
  std::iota(chosen.begin(), chosen.end(), 0u);
  if (chosen.size() > kStorages) {
    const auto stays = [&](const Storage& one) { return is_at(one, timeline.shown) || is_at(one, timeline.peak); };
    const auto rather = [&](std::uint32_t a, std::uint32_t b) {
      const Storage &one = trace.storages[a], &other = trace.storages[b];
      return std::pair(stays(one), one.bytes) > std::pair(stays(other), other.bytes);
    };
    std::nth_element(chosen.begin(), chosen.begin() + kStorages, chosen.end(), rather);
    timeline.storages_left_out = chosen.size() - kStorages;
    chosen.resize(kStorages);
  }
  for (const std::uint32_t i : chosen) {
    const Storage& storage = trace.storages[i];
    PlacedStorage placed{from_moment(storage), to_moment(storage), storage.address, storage.bytes, {}, storage.stack};
    if (const std::uint32_t owner = rank[all.of_storage[i]]; owner < timeline.owners.size()) placed.owner = owner;
    if (placed.from < placed.to) timeline.storages.push_back(placed);
  }
  std::stable_sort(timeline.storages.begin(), timeline.storages.end(),
                   [](const PlacedStorage& a, const PlacedStorage& b) { return a.from < b.from; });
}

void add_times(const trace::Trace& trace, Timeline& timeline) {
  if (trace.events.empty() || !trace.events.front().at) return;
  const std::int64_t first = trace.events.front().at->count;
  std::int64_t last = 0;
  for (const std::uint64_t moment : timeline.moments) {
    const auto& at = trace.events[moment == 0 ? 0 : moment - 1].at;
    // An event without a time gets that of the moment before. Differences wrap, because times of a damaged file may
    // overflow.
    if (at) last = static_cast<std::int64_t>(static_cast<std::uint64_t>(at->count) - static_cast<std::uint64_t>(first));
    timeline.times.push_back(last);
  }
}

}  // namespace

Timeline make_timeline(const InputHistory& history, const trace::Levels& levels, std::optional<EventId> shown) {
  const trace::Trace& trace = history.trace();
  Timeline timeline;
  timeline.events = trace.events.size();
  timeline.peak = moment_of(trace::find(trace, levels, trace::At::Peak)->event);
  timeline.shown = shown && shown->value < timeline.events ? moment_of(shown) : timeline.peak;
  std::vector<std::uint64_t> wanted = {timeline.peak, timeline.shown};
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const auto* refused = std::get_if<trace::event::OutOfMemory>(&trace.events[e].what);
    if (refused != nullptr && timeline.refused.size() < 1000) timeline.refused.push_back({e + 1, refused->requested});
  }
  for (const RefusedRequest& refused : timeline.refused) wanted.push_back(refused.moment);
  timeline.moments = sample_moments(levels, wanted);

  OwnerLevels all(history);
  const std::vector<std::uint32_t> order = by_importance(all, timeline.peak);
  std::vector<std::uint32_t> rank(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  for (std::size_t i = 0; i < order.size() && i < kListed; ++i) timeline.owners.push_back(all.owners[order[i]]);
  timeline.stacked = std::min(order.size(), kStacked);
  add_levels(all, rank, timeline);
  for (const std::uint64_t moment : timeline.moments) {
    timeline.reserved.push_back(moment == 0 ? trace.reserved_before : levels.reserved[moment - 1]);
  }
  add_storages(trace, all, rank, timeline);
  timeline.has_pool = history.take == nullptr;
  if (history.recorded != nullptr) timeline.ranges = reserved_ranges(trace, *history.recorded);
  add_times(trace, timeline);
  add_strips(history, timeline);
  add_ops(history, timeline);
  return timeline;
}

}  // namespace ullage::report
