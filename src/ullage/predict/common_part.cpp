// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/common_part.h"

#include "ullage/predict/comparison_events.h"
#include "ullage/predict/longest_common.h"
#include "ullage/predict/sequence.h"
#include "ullage/predict/thresholds.h"
#include "ullage/trace/meaning/levels.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace ullage::predict {
namespace {

namespace e = trace::event;

constexpr std::size_t kMostDifferences = 5000;  // ops between two takes; the search then takes 50 MB and a second
constexpr std::uint64_t kLoosest = 10;          // a new take's peak is higher by at most its own divided by this
constexpr std::size_t kNone = SIZE_MAX;

using Ops = std::vector<std::size_t>;  // OpIds
using Table = std::vector<std::vector<std::int64_t>>;

// Numbers ops so that two have the same number if they are the same op at the same place in the program.
class Numbering final {
 public:
  std::uint64_t of(const trace::Take& take, std::size_t op) {
    const trace::OpDetail& detail = take.details[op];
    std::string key = take.trace.ops[op].name + '\n' + detail.node + '\n' + detail.layer + '\n';
    for (const bool flag : {detail.backward, detail.grad_mode, detail.failed, detail.sliced}) key += flag ? '1' : '0';
    return known_.try_emplace(std::move(key), known_.size()).first->second;
  }

 private:
  std::unordered_map<std::string, std::uint64_t> known_;
};

// One take, seen from the common ops.
struct Side {
  const trace::Take& take;
  Ops ops;                          // by common op
  std::vector<std::size_t> common;  // by OpId: the common op, or kNone
  // By EventId: how many begins and ends of common ops came up to it. Place p is from the p-th of these events to the
  // next.
  std::vector<std::size_t> place;
  std::vector<StorageId> partners;  // by StorageId of the take that all are compared with

  Side(const trace::Take& of, Ops common_ops) : take(of), ops(std::move(common_ops)), common(of.details.size(), kNone) {
    for (std::size_t i = 0; i < ops.size(); ++i) common[ops[i]] = i;
    std::size_t passed = 0;
    for (const trace::Event& event : of.trace.events) {
      if (border(event) != kNone) ++passed;
      place.push_back(passed);
    }
  }
  // The common op that begins or ends with this event, or kNone.
  std::size_t border(const trace::Event& event) const {
    if (const auto* begun = as<e::OpBegin>(event)) return common[begun->op.value];
    if (const auto* ended = as<e::OpEnd>(event)) return common[ended->op.value];
    return kNone;
  }
  // The place at which a storage dies; kNone if it never does.
  std::size_t death(StorageId id) const {
    const EventId died = take.trace.storages[id.value].died;
    return died < take.trace.end() ? place[died.value] : kNone;
  }
};

// Pairs the storages of two sides.
class Pairing final {
 public:
  Pairing(const Side& mine, const Side& theirs)
      : mine_(mine),
        theirs_(theirs),
        partners_(mine.take.trace.storages.size(), kNoPartner),
        taken_(theirs.take.trace.storages.size()) {}

  // By StorageId of `mine`: its partner, or kNoPartner.
  std::vector<StorageId> run() && {
    // What an op makes and returns, and what it uses from before the take.
    for (std::size_t op = 0; op < mine_.ops.size(); ++op) {
      const auto& uses = mine_.take.details[mine_.ops[op]].uses;
      const auto& others = theirs_.take.details[theirs_.ops[op]].uses;
      if (uses.size() != others.size()) continue;
      for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].how != others[i].how) continue;
        const bool made = made_in(mine_, uses[i].storage, op) && made_in(theirs_, others[i].storage, op);
        const bool before = is_before(mine_, uses[i].storage) && is_before(theirs_, others[i].storage);
        if (made || before) pair(uses[i].storage, others[i].storage);
      }
    }
    // The others in the order of births, if there are equally many.
    const auto is_free = [this](StorageId id) { return partners_[id.value] == kNoPartner; };
    const auto is_free_there = [this](StorageId id) { return !taken_[id.value]; };
    const Births born = births(mine_, is_free), others = births(theirs_, is_free_there);
    for (const auto& [at, ids] : born) {
      const auto found = others.find(at);
      if (found == others.end() || found->second.size() != ids.size()) continue;
      for (std::size_t i = 0; i < ids.size(); ++i) pair(ids[i], found->second[i]);
    }
    return std::move(partners_);
  }

 private:
  // By the common op that made them; after these, by the place at which they were made outside of any op.
  using Births = std::unordered_map<std::size_t, std::vector<StorageId>>;

  static bool is_before(const Side& side, StorageId id) { return side.take.trace.storages[id.value].from_before; }
  static bool made_in(const Side& side, StorageId id, std::size_t op) {
    const trace::Storage& storage = side.take.trace.storages[id.value];
    const trace::OpDetail& detail = side.take.details[side.ops[op]];
    return !storage.from_before && detail.begin <= storage.born && storage.born < detail.end;
  }
  template <class IsFree>
  static Births births(const Side& side, const IsFree& is_free) {
    Births found;
    for (std::size_t i = 0; i < side.take.trace.events.size(); ++i) {
      const auto* born = as<e::Allocation>(side.take.trace.events[i]);
      if (born == nullptr || !is_free(born->storage)) continue;
      const OpId op = side.take.trace.storages[born->storage.value].op;
      if (op == trace::kNoOp) {
        found[side.ops.size() + side.place[i]].push_back(born->storage);
      } else if (side.common[op.value] != kNone) {
        found[side.common[op.value]].push_back(born->storage);
      }
    }
    return found;
  }
  void pair(StorageId mine, StorageId theirs) {
    if (partners_[mine.value] != kNoPartner || taken_[theirs.value]) return;
    partners_[mine.value] = theirs;
    taken_[theirs.value] = true;
  }

  const Side& mine_;
  const Side& theirs_;
  std::vector<StorageId> partners_;
  std::vector<bool> taken_;
};

// Raises counts until they follow a law.
class Lawful final {
 public:
  Lawful(const Grid& grid, const std::vector<std::int64_t>& at) : grid_(grid), law_(grid, at) {
    const bool two = grid.axes.size() == 2;
    const bool maybe_sides = two || grid.axes[0].values.size() > 3;
    const std::vector<std::int64_t> one{1};
    for (const std::int64_t x : grid.axes[0].values) {
      for (const std::int64_t y : two ? grid.axes[1].values : one) {
        is_usable_ = is_usable_ && x > 0 && y > 0 && x < kLargest && y < kLargest;
        powers_.push_back(!is_usable_ ? 1 : maybe_sides ? x * y * x * y : x * y);
      }
    }
    rises_in_lines_ = !maybe_sides;
  }
  bool follow_a_law(const std::vector<std::int64_t>& counts) const {
    const std::optional<std::int64_t> found = law_(counts);
    return found && (*found > 0 || std::ranges::max(counts) == 0);
  }
  // By place in the grid.
  std::vector<std::int64_t> above(const std::vector<std::int64_t>& counts) const {
    if (follow_a_law(counts)) return counts;
    if (rises_in_lines_ && std::ranges::is_sorted(counts)) {
      std::vector<std::int64_t> line = at_or_above(grid_, counts);
      if (follow_a_law(line)) return line;
    }
    return in_proportion(counts);
  }
  // For the most of several storages. One that does not grow may hide one that does, so the most counts as growing in
  // proportion at least.
  std::vector<std::int64_t> above_of_many(const std::vector<std::int64_t>& counts) const {
    std::vector<std::int64_t> law = above(counts), proportion = in_proportion(counts);
    return law_(law).value_or(0) >= law_(proportion).value_or(INT64_MAX) ? law : proportion;
  }
  // False: powers of the knobs are too large, or below 1.
  bool is_usable() const { return is_usable_; }

 private:
  static constexpr std::int64_t kLargest = 1 << 15;  // so that a power fits into 60 bits

  std::vector<std::int64_t> in_proportion(std::vector<std::int64_t> counts) const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      most = std::max(most, (counts[i] + powers_[i] - 1) / powers_[i]);
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (__builtin_mul_overflow(most, powers_[i], &counts[i])) counts[i] = INT64_MAX / 2;
    }
    return counts;
  }

  const Grid& grid_;
  const Evaluator law_;
  bool is_usable_ = true;
  std::vector<std::int64_t> powers_;  // by place in the grid
  bool rises_in_lines_ = true;
};

const std::vector<trace::TensorUse>& uses_of(const Side& side, std::size_t op) {
  return side.take.details[side.ops[op]].uses;
}

// Have all takes this use of the common op, with sizes that follow a law?
bool is_alike(const std::vector<std::size_t>& order, const std::vector<Side>& sides, std::size_t base,
              const Lawful& lawful, std::size_t op, std::size_t use) {
  const trace::TensorUse& mine = uses_of(sides[base], op)[use];
  for (const Side& side : sides) {
    if (uses_of(side, op).size() != uses_of(sides[base], op).size()) return false;
    const trace::TensorUse& theirs = uses_of(side, op)[use];
    if (theirs.how != mine.how || theirs.dtype != mine.dtype || theirs.sizes.size() != mine.sizes.size()) return false;
  }
  for (std::size_t axis = 0; axis < mine.sizes.size(); ++axis) {
    std::vector<std::int64_t> counts;
    for (const std::size_t take : order) counts.push_back(uses_of(sides[take], op)[use].sizes[axis]);
    if (!lawful.follow_a_law(counts)) return false;
  }
  return true;
}

// Writes the new takes: the events of the largest take, with each take's own bytes and sizes.
class Rewriting final {
 public:
  // `sides`: by take in the file. `base`: the take whose events are used.
  Rewriting(const trace::TraceFile& file, const std::vector<std::size_t>& order, const std::vector<Side>& sides,
            std::size_t base, const Lawful& lawful)
      : file_(file), order_(order), sides_(sides), base_(sides[base]), base_index_(base), lawful_(lawful) {}

  CommonPart run() {
    find_common_storages();
    find_moves();
    measure_the_rest();
    write_events();
    write_details();
    CommonPart part;
    part.file = file_;
    part.ops = base_.ops.size();
    part.raised = std::move(raised_);
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      part.rest = std::max(part.rest, sides_[i].take.details.size() - base_.ops.size());
      part.file.takes[i] = of(i);
    }
    return part;
  }

 private:
  // What happens in the new takes, but for the blocks of the rest.
  struct Move {
    enum class What { Border, Birth, Death, Save, Unsave } what;
    std::size_t event = 0;      // of the base: where it happens there
    StorageId id = kNoPartner;  // of the base
  };

  bool is_common(StorageId id) const { return new_id_[id.value] != kNoPartner; }

  void find_common_storages() {
    const std::size_t count = base_.take.trace.storages.size();
    new_id_.assign(count, kNoPartner);
    dies_.assign(count, kNone);
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t latest = 0;
      const auto is_in = [&](std::size_t take) {
        const StorageId id = partner(take, StorageId{i});
        if (id == kNoPartner) return false;
        latest = std::max(latest, sides_[take].death(id));  // kNone is the largest
        return true;
      };
      if (!std::ranges::all_of(order_, is_in)) continue;
      new_id_[i] = StorageId{ids_.size()};
      dies_[i] = latest;
      ids_.push_back(StorageId{i});
      std::vector<std::int64_t> counts;
      for (const std::size_t take : order_) counts.push_back(bytes_of(take, partner(take, StorageId{i})));
      bytes_.push_back(lawful_.above(counts));
      raised_.push_back(bytes_.back() != counts);
    }
  }
  StorageId partner(std::size_t take, StorageId id) const {
    return take == base_index_ ? id : sides_[take].partners[id.value];
  }
  std::int64_t bytes_of(std::size_t take, StorageId id) const {
    return std::int64_t(sides_[take].take.trace.storages[id.value].bytes.count);
  }

  void find_moves() {
    const auto& events = base_.take.trace.events;
    std::vector<std::vector<StorageId>> late(places());  // by place: those that die later than in the base
    for (const StorageId id : ids_) {
      const std::size_t dies = dies_[id.value];
      if (dies != kNone && dies != base_.death(id)) late[dies].push_back(id);
    }
    const auto end_place = [&](std::size_t place, std::size_t event) {
      for (const StorageId id : late[place]) moves_.push_back({Move::What::Death, event, id});
    };
    std::size_t place = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto note = [&](Move::What what, StorageId id) {
        if (is_common(id)) moves_.push_back({what, i, id});
      };
      if (base_.border(events[i]) != kNone) {
        end_place(place++, i);
        moves_.push_back({Move::What::Border, i});
      } else if (const auto* born = as<e::Allocation>(events[i])) {
        note(Move::What::Birth, born->storage);
      } else if (const auto* died = as<e::Free>(events[i])) {
        if (dies_[died->storage.value] == place) note(Move::What::Death, died->storage);
      } else if (const auto* saved = as<e::Save>(events[i])) {
        note(Move::What::Save, saved->storage);
      } else if (const auto* given_up = as<e::Unsave>(events[i])) {
        note(Move::What::Unsave, given_up->storage);
      }
    }
    end_place(place, events.size() - 1);
  }
  std::size_t places() const { return base_.ops.size() * 2 + 1; }

  // By place, the most bytes that are live in one of the takes: of its common storages, or of the others.
  std::vector<std::int64_t> most_live(std::size_t take, bool of_common) const {
    const Side& side = sides_[take];
    const std::vector<bool> common = commons_of(take);
    std::vector<std::int64_t> most(places());
    std::int64_t live = 0;
    for (std::size_t i = 0; i < common.size(); ++i) {
      if (side.take.trace.storages[i].from_before && common[i] == of_common) live += bytes_of(take, StorageId{i});
    }
    most[0] = live;
    for (std::size_t i = 0; i < side.place.size(); ++i) {
      const trace::Event& event = side.take.trace.events[i];
      const auto* born = as<e::Allocation>(event);
      const auto* died = as<e::Free>(event);
      if (born != nullptr && common[born->storage.value] == of_common) live += bytes_of(take, born->storage);
      if (died != nullptr && common[died->storage.value] == of_common) live -= bytes_of(take, died->storage);
      most[side.place[i]] = std::max(most[side.place[i]], live);
    }
    return most;
  }
  // By StorageId of the take.
  std::vector<bool> commons_of(std::size_t take) const {
    std::vector<bool> common(sides_[take].take.trace.storages.size());
    for (const StorageId id : ids_) common[partner(take, id).value] = true;
    return common;
  }
  // The same for the common storages in the new take. `at`: the take's place in the grid.
  std::vector<std::int64_t> most_common_live(std::size_t at) const {
    std::vector<std::int64_t> most(places());
    std::int64_t live = 0;
    for (const StorageId id : ids_) {
      if (base_.take.trace.storages[id.value].from_before) live += bytes_[new_id_[id.value].value][at];
    }
    std::size_t place = 0;
    most[0] = live;
    for (const Move& move : moves_) {
      if (move.what == Move::What::Border) ++place;
      if (move.what == Move::What::Birth) live += bytes_[new_id_[move.id.value].value][at];
      if (move.what == Move::What::Death) live -= bytes_[new_id_[move.id.value].value][at];
      most[place] = std::max(most[place], live);
    }
    return most;
  }
  // The rest at a place is the most that other than common storages held there. If the common ones held more there than
  // in the new take, because their order was another, that is added.
  void measure_the_rest() {
    rest_.assign(places(), none_);
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const std::vector<std::int64_t> others = most_live(order_[at], /*of_common=*/false);
      const std::vector<std::int64_t> common = most_live(order_[at], true), now = most_common_live(at);
      for (std::size_t place = 0; place < places(); ++place) {
        rest_[place][at] = others[place] + std::max<std::int64_t>(common[place] - now[place], 0);
      }
    }
    rest_is_raised_.assign(places(), false);
    for (std::size_t place = 0; place < places(); ++place) {
      if (rest_[place] == none_) continue;
      const std::vector<std::int64_t> measured = rest_[place];
      rest_[place] = lawful_.above_of_many(measured);
      rest_is_raised_[place] = rest_[place] != measured;
    }
  }

  template <class T>
  void add(T what) {
    take_.trace.events.push_back({what, now_, {}});
  }

  void write_events() {
    take_ = base_.take;
    take_.trace.events.clear();
    take_.trace.storages.clear();
    for (const StorageId id : ids_) take_.trace.storages.push_back(base_.take.trace.storages[id.value]);
    take_.trace.storages.push_back(of_the_rest());
    raised_.push_back(false);
    std::vector<std::size_t> running;  // common ops
    std::size_t place = 0;
    put_rest(place);
    for (const Move& move : moves_) {
      const trace::Event& event = base_.take.trace.events[move.event];
      new_event_.resize(move.event + 1, take_.trace.end());
      now_ = event.at;
      switch (move.what) {
        case Move::What::Border:
          begin_or_end(event, running);
          put_rest(++place);
          break;
        case Move::What::Birth:
          be_born(move.id, running);
          break;
        case Move::What::Death:
          die(new_id_[move.id.value]);
          break;
        case Move::What::Save:
          add(e::Save{new_id_[move.id.value], as<e::Save>(event)->kind});
          break;
        case Move::What::Unsave:
          add(e::Unsave{new_id_[move.id.value]});
          break;
      }
    }
    finish();
  }
  void begin_or_end(const trace::Event& event, std::vector<std::size_t>& running) {
    const OpId op{base_.border(event)};
    if (as<e::OpBegin>(event)) {
      running.push_back(op.value);
      begins_.push_back(take_.trace.end());  // ops are numbered in the order of their begins
      add(e::OpBegin{op});
    } else {
      std::erase(running, op.value);
      ends_[op.value] = take_.trace.end();
      add(e::OpEnd{op});
    }
  }
  // An op that made a common storage may be no common op. Then the innermost common op that runs has made it.
  void be_born(StorageId old, const std::vector<std::size_t>& running) {
    const StorageId id = new_id_[old.value];
    trace::Storage& storage = take_.trace.storages[id.value];
    if (storage.op != trace::kNoOp) {
      const std::size_t own = base_.common[storage.op.value];
      const OpId around = running.empty() ? trace::kNoOp : OpId{running.back()};
      storage.op = own != kNone ? OpId{own} : around;
    }
    storage.born = take_.trace.end();
    storage.died = storage.tensor_died = EventId{UINT64_MAX};
    add(e::Allocation{id});
  }
  void die(StorageId id) {
    take_.trace.storages[id.value].died = take_.trace.storages[id.value].tensor_died = take_.trace.end();
    add(e::Free{id});
  }
  // Changes the block that stands for the rest, if it changes here in some take.
  void put_rest(std::size_t place) {
    if (rest_[place] == (block_ ? blocks_.back() : none_)) return;
    if (block_) die(*std::exchange(block_, std::nullopt));
    if (rest_[place] == none_) return;
    block_ = StorageId{take_.trace.storages.size()};
    trace::Storage& storage = take_.trace.storages.emplace_back();
    storage.op = trace::kNoOp;
    storage.born = take_.trace.end();
    storage.died = storage.tensor_died = EventId{UINT64_MAX};
    add(e::Allocation{*block_});
    blocks_.push_back(rest_[place]);
    raised_.push_back(rest_is_raised_[place]);
  }
  void finish() {
    const EventId end = take_.trace.end();
    for (trace::Storage& storage : take_.trace.storages) {
      if (storage.died > end) storage.died = storage.tensor_died = end;
    }
    for (const StorageId id : ids_) {
      if (dies_[id.value] != kNone) continue;
      trace::Storage& storage = take_.trace.storages[new_id_[id.value].value];
      storage.died = storage.tensor_died = end;
    }
    new_event_.resize(base_.take.trace.events.size() + 1, end);
    const auto move = [&](EventId& at) { at = new_event_[std::min<std::size_t>(at.value, new_event_.size() - 1)]; };
    std::erase_if(take_.roles, [&](const trace::RoleSeen& role) { return !is_common(role.storage); });
    for (trace::RoleSeen& role : take_.roles) {
      move(role.at);
      role.storage = new_id_[role.storage.value];
    }
    for (trace::ReportedBorder& border : take_.borders) move(border.at);
    for (trace::Charged& charge : take_.charges) move(charge.at);
  }

  // A storage without bytes, which is there all the time. The uses of storages that are not common refer to it.
  StorageId rest_id() const { return StorageId{ids_.size()}; }
  static trace::Storage of_the_rest() {
    trace::Storage storage;
    storage.op = trace::kNoOp;
    storage.from_before = true;
    storage.died = storage.tensor_died = EventId{UINT64_MAX};
    return storage;
  }

  // Keeps the uses that all takes have alike.
  void write_details() {
    take_.trace.ops.clear();
    take_.details.clear();
    for (std::size_t op = 0; op < base_.ops.size(); ++op) {
      take_.trace.ops.push_back(base_.take.trace.ops[base_.ops[op]]);
      trace::OpDetail detail = base_.take.details[base_.ops[op]];
      detail.begin = begins_[op];
      detail.end = std::min(ends_[op], take_.trace.end());
      detail.uses.clear();
      kept_uses_.emplace_back();
      const auto& uses = base_.take.details[base_.ops[op]].uses;
      for (std::size_t use = 0; use < uses.size(); ++use) {
        if (!is_alike(order_, sides_, base_index_, lawful_, op, use)) continue;
        kept_uses_.back().push_back(use);
        detail.uses.push_back(uses[use]);
        detail.uses.back().storage = has_partners(op, use) ? new_id_[uses[use].storage.value] : rest_id();
      }
      take_.details.push_back(std::move(detail));
    }
  }
  const std::vector<trace::TensorUse>& uses(std::size_t take, std::size_t op) const {
    return uses_of(sides_[take], op);
  }
  bool has_partners(std::size_t op, std::size_t use) const {
    const StorageId mine = uses(base_index_, op)[use].storage;
    return is_common(mine) && std::ranges::all_of(order_, [&](std::size_t take) {
             return uses(take, op)[use].storage == partner(take, mine);
           });
  }

  // The new take that stands for one of the file.
  trace::Take of(std::size_t take) const {
    const std::size_t place = std::size_t(std::ranges::find(order_, take) - order_.begin());
    const Side& side = sides_[take];
    trace::Take made = take_;
    made.knobs = side.take.knobs;
    made.process = side.take.process;
    made.end = side.take.end;
    made.trace.reserved_before = side.take.trace.reserved_before;
    made.trace.live_before = {};
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      trace::Storage& storage = made.trace.storages[i];
      storage.bytes = Bytes{std::uint64_t(bytes_[i][place])};
      if (storage.from_before) made.trace.live_before += storage.bytes;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      made.trace.storages[rest_id().value + 1 + i].bytes = Bytes{std::uint64_t(blocks_[i][place])};
    }
    for (std::size_t op = 0; op < made.details.size(); ++op) {
      made.details[op].took = side.take.details[side.ops[op]].took;
      for (std::size_t i = 0; i < kept_uses_[op].size(); ++i) {
        made.details[op].uses[i].sizes = uses(take, op)[kept_uses_[op][i]].sizes;
      }
    }
    for (std::size_t i = 0; i < made.charges.size(); ++i) made.charges[i].bytes = side.take.charges[i].bytes;
    return made;
  }

  const trace::TraceFile& file_;
  const std::vector<std::size_t>& order_;
  const std::vector<Side>& sides_;
  const Side& base_;
  const std::size_t base_index_;
  const Lawful& lawful_;
  const std::vector<std::int64_t> none_ = std::vector<std::int64_t>(order_.size());
  std::vector<StorageId> new_id_;  // by StorageId of the base; kNoPartner: it is of the rest
  std::vector<StorageId> ids_;     // of the base, by new id
  std::vector<std::size_t> dies_;  // by StorageId of the base: the latest place; kNone: never
  std::vector<Move> moves_;
  Table bytes_;                                // of common storages: by new id, by place in the grid
  Table rest_;                                 // by place in the take, by place in the grid
  Table blocks_;                               // in the order of births, by place in the grid
  std::vector<bool> raised_, rest_is_raised_;  // by new id; by place in the take
  trace::Take take_;
  std::optional<trace::Microseconds> now_;
  std::optional<StorageId> block_;  // the block that is alive
  std::vector<EventId> begins_;     // by common op
  std::vector<EventId> ends_ = std::vector<EventId>(base_.ops.size(), EventId{UINT64_MAX});
  std::vector<EventId> new_event_;                   // by EventId of the base: it, or the next one that is kept
  std::vector<std::vector<std::size_t>> kept_uses_;  // by common op: indices of its uses
};

// Finds the common ops of all takes; by take in the file. Nothing if two takes differ too much.
std::optional<std::vector<Ops>> common_ops(const trace::TraceFile& file, std::size_t base) {
  Numbering numbering;
  const auto numbers = [&](std::size_t take, const Ops& ops) {
    std::vector<std::uint64_t> found;
    for (const std::size_t op : ops) found.push_back(numbering.of(file.takes[take], op));
    return found;
  };
  const auto all_of = [&](std::size_t take) {
    Ops ops(file.takes[take].details.size());
    for (std::size_t op = 0; op < ops.size(); ++op) ops[op] = op;
    return ops;
  };
  std::vector<Ops> common(file.takes.size());
  common[base] = all_of(base);
  std::vector<std::size_t> done{base};
  for (std::size_t take = 0; take < file.takes.size(); ++take) {
    if (take == base) continue;
    const Ops all = all_of(take);
    const auto pairs = longest_common(numbers(base, common[base]), numbers(take, all), kMostDifferences);
    if (!pairs) return std::nullopt;
    for (const std::size_t other : done) {
      Ops kept;
      for (const auto& [mine, theirs] : *pairs) kept.push_back(common[other][mine]);
      common[other] = std::move(kept);
    }
    for (const auto& [mine, theirs] : *pairs) common[take].push_back(all[theirs]);
    done.push_back(take);
  }
  return common;
}

// Returns whether the takes have equally many borders, charges and no lost events.
bool can_be_compared(const trace::TraceFile& file) {
  const trace::Take& first = file.takes[0];
  const auto same_border = [](const trace::ReportedBorder& a, const trace::ReportedBorder& b) {
    return a.what == b.what && a.phase == b.phase && a.knobs == b.knobs;
  };
  return std::ranges::all_of(file.takes, [&](const trace::Take& take) {
    return take.gaps.empty() && take.charges.size() == first.charges.size() &&
           std::ranges::equal(take.borders, first.borders, same_border);
  });
}

// Returns whether a common op loses a use by whose sizes a threshold or scratch without a law is decided.
bool loses_what_decides(const std::vector<std::size_t>& order, const std::vector<Side>& sides, std::size_t base,
                        const Lawful& lawful) {
  const Side& side = sides[base];
  for (std::size_t op = 0; op < side.ops.size(); ++op) {
    const bool decides =
        has_threshold(side.take.trace.ops[side.ops[op]]) || varying_scratch(side.take, OpId{side.ops[op]}) > Bytes{};
    for (std::size_t use = 0; decides && use < uses_of(side, op).size(); ++use) {
      if (!is_alike(order, sides, base, lawful, op, use)) return true;
    }
  }
  return false;
}

// Returns whether each common op has ended in all takes or in none.
bool end_alike(const std::vector<Side>& sides) {
  const auto has_ended = [](const Side& side, std::size_t op) {
    return side.take.details[side.ops[op]].end < side.take.trace.end();
  };
  for (std::size_t op = 0; op < sides[0].ops.size(); ++op) {
    const bool first = has_ended(sides[0], op);
    if (!std::ranges::all_of(sides, [&](const Side& side) { return has_ended(side, op) == first; })) return false;
  }
  return true;
}

Bytes peak_of(const trace::Take& take) {
  Bytes peak = take.trace.live_before;
  for (const Bytes live : trace::levels(take.trace).live) peak = std::max(peak, live);
  return peak;
}

}  // namespace

std::optional<CommonPart> common_part(const trace::TraceFile& file, const Grid& grid,
                                      const std::vector<std::size_t>& order, const std::vector<std::int64_t>& at) {
  if (!can_be_compared(file)) return std::nullopt;
  const std::size_t base = order.back();
  std::optional<std::vector<Ops>> ops = common_ops(file, base);
  if (!ops || ops->front().empty()) return std::nullopt;
  std::vector<Side> sides;
  sides.reserve(file.takes.size());
  for (std::size_t i = 0; i < file.takes.size(); ++i) sides.emplace_back(file.takes[i], std::move((*ops)[i]));
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (i != base) sides[i].partners = Pairing(sides[base], sides[i]).run();
  }
  const Lawful lawful(grid, at);
  if (!lawful.is_usable() || !end_alike(sides) || loses_what_decides(order, sides, base, lawful)) return std::nullopt;
  CommonPart part = Rewriting(file, order, sides, base, lawful).run();
  for (std::size_t i = 0; i < file.takes.size(); ++i) {
    const Bytes own = peak_of(file.takes[i]), made = peak_of(part.file.takes[i]);
    if (made < own || made - own > Bytes{own.count / kLoosest}) return std::nullopt;
  }
  return part;
}

}  // namespace ullage::predict
