// SPDX-License-Identifier: Apache-2.0
// Compares runs of events whose order does not matter as sets.
#include "ullage/predict/comparison.h"
#include "ullage/predict/comparison_events.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::predict {

namespace e = trace::event;

namespace {

// The storages of a run of births and deaths. `within` and `surviving` are sorted by bytes, so that their order does
// not depend on which thread was first.
struct Run {
  std::vector<StorageId> within, surviving;  // born in the run; they die in it, or live on
  std::vector<StorageId> gone;               // born before the run, die in it
};

Run run_of(const trace::Take& take, const std::vector<bool>& left_out, std::size_t begin, std::size_t end) {
  Run run;
  for (std::size_t i = begin; i < end; ++i) {
    if (const StorageId* id = storage_of(take.trace.events[i]); id != nullptr && left_out[id->value]) continue;
    if (const auto* born = as<e::Allocation>(take.trace.events[i])) {
      (take.trace.storages[born->storage.value].died.value < end ? run.within : run.surviving).push_back(born->storage);
    } else if (const auto* died = as<e::Free>(take.trace.events[i])) {
      const trace::Storage& storage = take.trace.storages[died->storage.value];
      if (storage.from_before || storage.born.value < begin) run.gone.push_back(died->storage);
    }
  }
  const auto bytes = [&](StorageId id) { return take.trace.storages[id.value].bytes; };
  for (std::vector<StorageId>* ids : {&run.within, &run.surviving}) {
    std::ranges::stable_sort(*ids, std::greater<>(), bytes);
  }
  return run;
}

// An event of is_death().
struct Death {
  std::size_t kind;  // index of the event's type
  StorageId storage;
  std::size_t event;
};

std::vector<Death> deaths_from(const trace::Take& take, const std::vector<bool>& left_out, std::size_t begin) {
  std::vector<Death> deaths;
  for (std::size_t i = begin; i < take.trace.events.size() && is_death(take.trace.events[i]); ++i) {
    const trace::Event& event = take.trace.events[i];
    const auto* given_up = as<e::Unsave>(event);
    const StorageId* const id = given_up != nullptr ? &given_up->storage : storage_of(event);
    if (id == nullptr) continue;
    if (given_up != nullptr || !left_out[id->value]) deaths.push_back({event.what.index(), *id, i});
  }
  return deaths;
}

}  // namespace

std::size_t Comparison::end_of_run(const trace::Take& take, std::size_t from) {
  while (from < take.trace.events.size() && is_birth_or_death(take.trace.events[from])) ++from;
  return from;
}

bool Comparison::any_worker(const Side& side, std::size_t end) {
  const auto begin = side.by_worker.begin();
  return std::find(begin + std::ptrdiff_t(side.at), begin + std::ptrdiff_t(end), true) != begin + std::ptrdiff_t(end);
}

// Compares both runs as sets. Pairs their storages by bytes: those that die within the run, then those that live on.
bool Comparison::same_run(std::size_t end, std::size_t other_end) {
  const Run mine = run_of(first_.take, first_.left_out, first_.at, end);
  const Run theirs = run_of(other_.take, other_.left_out, other_.at, other_end);
  const auto all = [this](const std::vector<StorageId>& a, const std::vector<StorageId>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      partner_[a[i].value] = b[i];
      partner_of_other_[b[i].value] = a[i];
    }
  };
  if (mine.within.size() != theirs.within.size() || mine.surviving.size() != theirs.surviving.size() ||
      mine.gone.size() != theirs.gone.size()) {
    return said("on threads without an op of their own, with another number of allocations or frees");
  }
  all(mine.within, theirs.within);
  all(mine.surviving, theirs.surviving);
  for (const StorageId id : mine.gone) {
    const StorageId other = partner_[id.value];
    if (std::ranges::find(theirs.gone, other) == theirs.gone.end()) return said("of another storage");
  }
  unordered_.push_back({EventId{first_.at}, EventId{end}});
  first_.at = end;
  other_.at = other_end;
  return true;
}

// Compares all deaths from here to the next event of another kind as sets.
bool Comparison::same_deaths() {
  const std::vector<Death> mine = deaths_from(first_.take, first_.left_out, first_.at);
  const std::vector<Death> theirs = deaths_from(other_.take, other_.left_out, other_.at);
  // The deaths of the other take that are not matched yet: the event of each, by kind and storage. One kind may come
  // several times for a storage, because autograd may release it several times.
  std::multimap<std::pair<std::size_t, StorageId>, std::size_t> missing;
  for (const Death& death : theirs) missing.emplace(std::pair{death.kind, death.storage}, death.event);
  std::vector<const Death*> unknown;  // storages from before that are not paired yet
  for (const Death& death : mine) {
    const StorageId partner = partner_[death.storage.value];
    if (partner == kNoPartner) {
      unknown.push_back(&death);
      continue;
    }
    const auto found = missing.find({death.kind, partner});
    if (found == missing.end()) {
      first_.at = death.event;
      return said("of another storage");
    }
    missing.erase(found);
  }
  for (const Death* death : unknown) {
    const auto found = std::ranges::find_if(missing, [&](const auto& one) {
      return one.first.first == death->kind && pair(death->storage, one.first.second);
    });
    if (found == missing.end()) {
      first_.at = death->event;
      return said("of another storage");
    }
    missing.erase(found);
  }
  first_.at = mine.back().event + 1;
  if (!missing.empty()) {
    other_.at = missing.begin()->second;
    return said("which the first take does not do");
  }
  other_.at = theirs.back().event + 1;
  return true;
}

}  // namespace ullage::predict
