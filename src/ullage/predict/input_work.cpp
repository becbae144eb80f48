// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/input_work.h"

#include "ullage/predict/comparison_events.h"
#include "ullage/predict/removal.h"
#include "ullage/predict/thresholds.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ullage::predict {
namespace {

namespace e = trace::event;

// Finds the ops of a take that only prepare inputs, and decides what becomes of their storages.
class Marks final {
 public:
  explicit Marks(const trace::Take& take)
      : take_(take),
        follows_(take.trace.storages.size()),
        used_(follows_.size()),
        outside_(follows_.size()),
        ops_(take.details.size(), true) {
    std::size_t running = 0;
    for (const trace::Event& event : take.trace.events) {
      if (as<e::OpBegin>(event)) ++running;
      if (as<e::OpEnd>(event) && running > 0) --running;
      if (const auto* born = as<e::Allocation>(event)) outside_[born->storage.value] = running == 0;
    }
    for (const trace::RoleSeen& role : take.roles) follows_[role.storage.value] = true;
    has_parameters_ = !take.roles.empty();
    for (const trace::Event& event : take.trace.events) {
      const auto* saved = as<e::Save>(event);
      if (saved != nullptr && saved->kind != trace::SavedKind::Constant) follows_[saved->storage.value] = true;
    }
    for (std::size_t op = 0; op < ops_.size();) op = mark(op);
    for (std::size_t op = 0; op < ops_.size(); ++op) {
      if (ops_[op]) continue;
      for (const trace::TensorUse& use : take.details[op].uses) used_[use.storage.value] = true;
    }
  }

  bool has_parameters() const { return has_parameters_; }
  bool any() const { return std::ranges::find(ops_, true) != ops_.end(); }
  const std::vector<bool>& ops() const { return ops_; }
  // Is the storage removed, because it was made to prepare inputs and no op that stays uses it?
  bool goes(std::size_t storage) const { return prepared(storage) && !used_[storage]; }
  bool is_input(std::size_t storage) const { return prepared(storage) && used_[storage]; }

 private:
  // Marks an op together with those inside it. Returns the next op outside it.
  std::size_t mark(std::size_t first) {
    const trace::OpDetail& outer = take_.details[first];
    std::size_t end = first + 1;
    while (end < ops_.size() && take_.details[end].begin < outer.end) ++end;
    bool prepares = true;
    for (std::size_t op = first; op < end; ++op) {
      const trace::OpDetail& detail = take_.details[op];
      prepares &= !detail.backward && !has_threshold(take_.trace.ops[op]) &&
                  std::ranges::none_of(detail.uses,
                                       [&](const trace::TensorUse& use) { return bool(follows_[use.storage.value]); });
    }
    for (std::size_t op = first; op < end; ++op) {
      ops_[op] = prepares;
      if (prepares) continue;
      for (const trace::TensorUse& use : take_.details[op].uses) {
        if (use.how != trace::TensorUse::How::Read) follows_[use.storage.value] = true;
      }
    }
    return end;
  }
  // Did a marked op make the storage, or the program while no op ran (torch.tensor(5))?
  bool prepared(std::size_t storage) const {
    const trace::Storage& one = take_.trace.storages[storage];
    return !one.from_before && !follows_[storage] && (one.op != trace::kNoOp ? ops_[one.op.value] : outside_[storage]);
  }

  const trace::Take& take_;
  std::vector<bool> follows_;  // index: StorageId. It follows from a parameter
  std::vector<bool> used_;     // index: StorageId. An op that stays uses it
  std::vector<bool> outside_;  // index: StorageId. Born while no op ran
  std::vector<bool> ops_;      // index: OpId. To be removed
  bool has_parameters_ = false;
};

// Counts places: the begins of ops that stay and are within no other op.
class Places final {
 public:
  // Whether the event is the next place.
  bool is_place(const trace::Event& event, const std::vector<bool>& gone) {
    const auto* begun = as<e::OpBegin>(event);
    const auto* ended = as<e::OpEnd>(event);
    if (begun != nullptr && !stays(begun->op, gone)) return false;
    if (ended != nullptr && stays(ended->op, gone) && depth_ > 0) --depth_;
    return begun != nullptr && depth_++ == 0;
  }

 private:
  static bool stays(OpId op, const std::vector<bool>& gone) { return op.value >= gone.size() || !gone[op.value]; }
  std::size_t depth_ = 0;
};

// The bytes that the removed storages of one take held. Index: the place; the last entry is for the end of the take.
struct Held {
  std::vector<std::int64_t> throughout;  // while the op at this place runs
  std::vector<std::int64_t> before;      // the most between the op before and this one, less `throughout`
};

Held held(const trace::Take& take, const Marks& marks) {
  Held held;
  Places places;
  std::int64_t live = 0, most = 0;
  const auto end_place = [&] {
    held.throughout.push_back(live);
    held.before.push_back(most - live);
    most = live;
  };
  for (const trace::Event& event : take.trace.events) {
    if (const auto* born = as<e::Allocation>(event); born != nullptr && marks.goes(born->storage.value)) {
      live += std::int64_t(take.trace.storages[born->storage.value].bytes.count);
      most = std::max(most, live);
    } else if (const auto* died = as<e::Free>(event); died != nullptr && marks.goes(died->storage.value)) {
      live -= std::int64_t(take.trace.storages[died->storage.value].bytes.count);
    } else if (places.is_place(event, marks.ops())) {
      end_place();
    }
  }
  end_place();
  return held;
}

// The place of the first op of a backward pass; the number of places if there is none.
std::size_t first_backward(const trace::Take& take, const Marks& marks) {
  Places places;
  std::size_t place = 0;
  for (const trace::Event& event : take.trace.events) {
    if (!places.is_place(event, marks.ops())) continue;
    if (take.details[as<e::OpBegin>(event)->op.value].backward) break;
    ++place;
  }
  return place;
}

// Removes the marked ops and their storages from a take. In their place it puts storages that belong to no op and hold
// the bytes that the removed ones may hold.
class Rewriting final {
 public:
  Rewriting(trace::Take& take, const Marks& marks) : take_(take) {
    for (std::size_t i = 0; i < take.trace.storages.size(); ++i) gone_.push_back(marks.goes(i));
    remove_ops(take, marks.ops());
  }

  // `lasting` and `passing`: bytes by place. `changes`: the places at which `lasting` changes in some take.
  void run(const std::vector<std::int64_t>& lasting, const std::vector<bool>& changes,
           const std::vector<std::int64_t>& passing) {
    old_ = std::move(take_.trace.events);
    take_.trace.events.clear();
    const auto put = [&](std::size_t at, const trace::Event& like) {
      if (at >= changes.size()) return;
      if (changes[at]) replace_lasting(lasting[at], like);
      if (passing[at] > 0) die(be_born(passing[at], like), like);
    };
    Places places;
    std::size_t place = 0;
    for (const trace::Event& event : old_) {
      if (places.is_place(event, {})) put(place++, event);
      new_event_.push_back(take_.trace.end().value);
      const StorageId* id = storage_of(event);
      if (id == nullptr || id->value >= gone_.size() || !gone_[id->value]) take_.trace.events.push_back(event);
    }
    if (!old_.empty()) put(place, old_.back());
    new_event_.push_back(take_.trace.end().value);
    renumber();
  }

 private:
  void replace_lasting(std::int64_t bytes, const trace::Event& like) {
    if (lasting_) die(*std::exchange(lasting_, std::nullopt), like);
    if (bytes > 0) lasting_ = be_born(bytes, like);
  }
  StorageId be_born(std::int64_t bytes, const trace::Event& like) {
    trace::Storage storage;
    storage.bytes = Bytes{std::uint64_t(bytes)};
    storage.op = trace::kNoOp;
    storage.born = take_.trace.end();
    made_.push_back(storage);
    const StorageId id{gone_.size() + made_.size() - 1};
    take_.trace.events.push_back({e::Allocation{id}, like.at, {}});
    return id;
  }
  void die(StorageId id, const trace::Event& like) {
    made(id).tensor_died = made(id).died = take_.trace.end();
    take_.trace.events.push_back({e::Free{id}, like.at, {}});
  }

  trace::Storage& made(StorageId id) { return made_[id.value - gone_.size()]; }

  void renumber() {
    renumber_events(take_, new_event_);
    for (std::size_t i = 0; i < gone_.size(); ++i) {
      trace::Storage& storage = take_.trace.storages[i];
      if (gone_[i]) storage.tensor_died = storage.died = storage.born;
    }
    if (lasting_) made(*lasting_).tensor_died = made(*lasting_).died = take_.trace.end();
    take_.trace.storages.insert(take_.trace.storages.end(), made_.begin(), made_.end());
  }

  trace::Take& take_;
  std::vector<bool> gone_;                // index: StorageId
  std::vector<trace::Event> old_;         // the events with those of removed storages
  std::vector<std::uint64_t> new_event_;  // as for renumber_events()
  std::vector<trace::Storage> made_;      // their ids follow those of the take
  std::optional<StorageId> lasting_;      // of made_, the one that is alive
};

// Returns bytes, by place in the grid and place in the take, that follow a law over the grid and are at or above
// `bytes`.
using Table = std::vector<std::vector<std::int64_t>>;
Table lawful(const Grid& grid, const Table& bytes, std::size_t places) {
  Table above(bytes.size(), std::vector<std::int64_t>(places));
  std::vector<std::int64_t> counts(bytes.size());
  for (std::size_t place = 0; place < places; ++place) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = bytes[i][place];
    if (std::ranges::all_of(counts, [](std::int64_t count) { return count == 0; })) continue;
    counts = at_or_above(grid, counts);
    for (std::size_t i = 0; i < counts.size(); ++i) above[i][place] = counts[i];
  }
  return above;
}

}  // namespace

std::optional<InputWork> without_input_work(const trace::TraceFile& file, const Grid& grid,
                                            const std::vector<std::size_t>& order, HeldByThem what) {
  std::vector<Marks> marks;
  for (const trace::Take& take : file.takes) marks.emplace_back(take);
  if (std::ranges::none_of(marks, &Marks::any) || !std::ranges::all_of(marks, &Marks::has_parameters)) return {};

  Table lasting, passing;
  std::size_t places = SIZE_MAX, steps = SIZE_MAX;
  for (const std::size_t take : order) {
    Held one = held(file.takes[take], marks[take]);
    places = std::min(places, one.before.size());
    steps = std::min(steps, first_backward(file.takes[take], marks[take]));
    lasting.push_back(std::move(one.throughout));
    passing.push_back(std::move(one.before));
  }
  // Some takes hold bytes at a place of the steps that others do not. Each take's largest sum of such bytes then counts
  // at every place of the steps.
  std::vector<bool> irregular(places);
  for (std::size_t place = steps; place < places; ++place) {
    irregular[place] = std::ranges::any_of(passing, [&](const auto& take) { return take[place] == 0; });
  }
  for (std::vector<std::int64_t>& take : passing) {
    std::int64_t most = 0;
    for (std::size_t place = steps; place < places; ++place) {
      if (irregular[place]) most = std::max(most, take[place]);
    }
    for (std::size_t place = steps; place < places; ++place) take[place] = std::max(take[place], most);
  }
  if (what == HeldByThem::LeftOut) places = 0;
  lasting = lawful(grid, lasting, places);
  passing = lawful(grid, passing, places);

  std::vector<bool> changes(places);
  for (std::size_t place = 0; place < places; ++place) {
    changes[place] = std::ranges::any_of(
        lasting, [&](const auto& take) { return take[place] != (place == 0 ? 0 : take[place - 1]); });
  }
  InputWork work{file, {}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t take = order[i];
    Rewriting(work.file.takes[take], marks[take]).run(lasting[i], changes, passing[i]);
  }
  work.inputs.resize(work.file.takes[0].trace.storages.size());
  for (std::size_t i = 0; i < file.takes[0].trace.storages.size(); ++i) work.inputs[i] = marks[0].is_input(i);
  return work;
}

}  // namespace ullage::predict
