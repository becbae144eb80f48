// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/event_log.h"

#include "ullage/base/check.h"
#include "ullage/trace/file/file_json.h"
#include "ullage/trace/file/file_parts.h"
#include "ullage/trace/file/id_table.h"
#include "ullage/trace/file/packed_take.h"
#include "ullage/trace/file/take_writer.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

namespace ullage::trace {
namespace {

constexpr Bytes kMostBytes{1ull << 62};  // readers refuse more

std::uint64_t micros(EventLog::Instant at) { return at.nanoseconds / 1000; }

std::uint64_t bit(Role role) { return std::uint64_t{1} << static_cast<unsigned>(role); }

}  // namespace

struct EventLog::State {
  struct Live {
    Bytes bytes;
    std::uint64_t roles = 0;  // one bit per Role
    std::uint64_t name = 0;   // number of the text that names a parameter; 0: none
  };
  struct Before {
    std::uint64_t storage = 0;
    Live live;
  };
  struct OpenOp {
    std::uint64_t op = 0;
    std::uint32_t thread = 0;
    std::uint64_t begun_ns = 0;
  };

  struct LoggedTake {
    LoggedTake(TakeHead head_, Position& now, Shapes& shapes, EventLog::Limits limits)
        : head(std::move(head_)), packed(now, shapes, limits) {}
    TakeHead head;
    std::vector<Before> before;  // storages that were live when the take began, by id
    PackedTake packed;
    std::optional<TakeEnd> end;  // none while the take is open
  };

  explicit State(Limits limits_) : limits(limits_) {}

  PackedTake* packed() { return takes.empty() || takes.back().end ? nullptr : &takes.back().packed; }
  // Leaves out uses of storages that are not live in the log (from before the recording, or of another device).
  std::span<const UseView> known(std::span<const UseView> uses);
  std::optional<std::uint64_t> innermost(std::uint32_t thread) const;
  std::vector<PackedKnob> pack(std::span<const Knob> knobs);
  void carry_over(LoggedTake& take);

  Limits limits;
  Position now;
  Texts texts;
  Shapes shapes;
  IdTable<Live> live;
  std::vector<OpenOp> open;  // in the order of their begins
  std::deque<LoggedTake> takes;
  std::int64_t charged = 0;
  std::vector<UseView> kept;  // holds the result of known()
};

std::span<const UseView> EventLog::State::known(std::span<const UseView> uses) {
  const auto is_live = [&](const UseView& use) { return live.find(use.storage.value) != nullptr; };
  if (std::ranges::all_of(uses, is_live)) return uses;
  kept.clear();
  std::ranges::copy_if(uses, std::back_inserter(kept), is_live);
  return kept;
}

std::optional<std::uint64_t> EventLog::State::innermost(std::uint32_t thread) const {
  const auto found =
      std::find_if(open.rbegin(), open.rend(), [&](const State::OpenOp& one) { return one.thread == thread; });
  return found == open.rend() ? std::nullopt : std::optional(found->op);
}

std::vector<PackedKnob> EventLog::State::pack(std::span<const Knob> knobs) {
  std::vector<PackedKnob> packed;
  for (const Knob& knob : knobs) packed.push_back({texts.of(knob.name), knob.value});
  return packed;
}

// Writes into a new take what exists at its begin: the live storages, their roles, and the charged bytes.
void EventLog::State::carry_over(LoggedTake& take) {
  take.before.reserve(live.size());
  live.for_each([&](std::uint64_t id, const Live& one) { take.before.push_back({id, one}); });
  std::ranges::sort(take.before, {}, &Before::storage);
  for (const State::Before& one : take.before) {
    for (const Role role : {Role::Parameter, Role::Gradient}) {
      if ((one.live.roles & bit(role)) != 0) {
        take.packed.role(one.storage, role, role == Role::Parameter ? one.live.name : 0);
      }
    }
  }
  if (charged != 0) take.packed.charge(charged);
}

EventLog::EventLog() : EventLog(Limits{}) {}
EventLog::EventLog(Limits limits) : state_(std::make_unique<State>(limits)) {}
EventLog::~EventLog() = default;
EventLog& EventLog::operator=(EventLog&&) noexcept = default;

void EventLog::begin_take(std::span<const Knob> knobs) {
  if (state_->packed() != nullptr) end_take({}, Take::End::Program);
  state_->open.clear();
  state_->now.micros = 0;
  state_->now.thread = 0;
  TakeHead head{{knobs.begin(), knobs.end()}, state_->now.next_storage, state_->now.next_op};
  state_->carry_over(state_->takes.emplace_back(std::move(head), state_->now, state_->shapes, state_->limits));
}

void EventLog::end_take(const ProcessFigures& figures, Take::End why) {
  if (PackedTake* take = state_->packed()) state_->takes.back().end = {figures, why, take->events()};
}

StorageId EventLog::allocated(Bytes bytes, std::uint32_t thread, Instant at) {
  const StorageId id{state_->now.next_storage};
  if (PackedTake* take = state_->packed()) {
    take->allocation(bytes, state_->innermost(thread), micros(at));
  } else {
    ++state_->now.next_storage;
  }
  state_->live[id.value] = {bytes, 0, 0};
  return id;
}

void EventLog::freed(StorageId storage, std::uint32_t, Instant at) {
  if (state_->live.find(storage.value) == nullptr) return;
  state_->live.erase(storage.value);
  if (PackedTake* take = state_->packed()) take->free(storage.value, micros(at));
}

OpId EventLog::op_begun(const OpView& op, std::span<const UseView> uses, Instant at) {
  const OpId id{state_->now.next_op};
  PackedTake* take = state_->packed();
  if (take == nullptr) return ++state_->now.next_op, id;
  Texts& texts = state_->texts;
  const PackedTake::OpTexts names{texts.of_constant(op.name), texts.of_constant(op.node), texts.of_constant(op.layer),
                                  texts.of_constant(op.line)};
  take->op_begin(op, names, state_->known(uses), micros(at));
  state_->open.push_back({id.value, op.thread, at.nanoseconds});
  return id;
}

void EventLog::op_ended(OpId op, std::span<const UseView> outputs, bool failed, Instant at, OutsideReads outside) {
  auto& open = state_->open;
  const auto found =
      std::find_if(open.rbegin(), open.rend(), [&](const State::OpenOp& one) { return one.op == op.value; });
  PackedTake* take = state_->packed();
  if (found == open.rend() || take == nullptr) return;
  const std::uint64_t took = std::max(at.nanoseconds, found->begun_ns) - found->begun_ns;
  open.erase(std::next(found).base());
  take->op_end(op.value, took, failed, outside, state_->known(outputs), micros(at));
}

void EventLog::saved(StorageId storage, SavedKind kind, Instant at) {
  PackedTake* take = state_->packed();
  if (take != nullptr && state_->live.find(storage.value) != nullptr) take->save(storage.value, kind, micros(at));
}

void EventLog::released(StorageId storage, Instant at) {
  PackedTake* take = state_->packed();
  if (take != nullptr && state_->live.find(storage.value) != nullptr) take->unsave(storage.value, micros(at));
}

void EventLog::out_of_memory(Bytes requested, std::uint32_t, Instant at) {
  if (PackedTake* take = state_->packed()) take->out_of_memory(std::min(requested, kMostBytes), micros(at));
}

void EventLog::has_role(StorageId storage, Role role, std::string_view name) {
  State::Live* live = state_->live.find(storage.value);
  if (live == nullptr) return;
  const std::uint64_t text = state_->texts.of(name);
  if ((live->roles & bit(role)) != 0 && (text == 0 || text == live->name)) return;
  live->roles |= bit(role);
  if (text != 0) live->name = text;
  if (PackedTake* take = state_->packed()) take->role(storage.value, role, text);
}

void EventLog::border(ReportedBorder::What what, std::string_view phase, std::span<const Knob> knobs) {
  if (PackedTake* take = state_->packed()) take->border(what, state_->texts.of(phase), state_->pack(knobs));
}

void EventLog::charged(std::int64_t bytes) {
  state_->charged += bytes;
  if (PackedTake* take = state_->packed()) take->charge(bytes);
}

std::uint64_t EventLog::events() const { return state_->takes.empty() ? 0 : state_->takes.back().packed.events(); }

Bytes EventLog::held() const {
  std::size_t bytes = state_->texts.held() + state_->shapes.held() + state_->live.held() +
                      state_->open.capacity() * sizeof(State::OpenOp) + state_->kept.capacity() * sizeof(UseView);
  for (const State::LoggedTake& take : state_->takes) {
    bytes += sizeof(State::LoggedTake) + take.packed.held() + take.before.capacity() * sizeof(State::Before);
  }
  return Bytes{bytes};
}

void EventLog::write(const TraceFile& file, const ProcessFigures& figures, Take::End why, std::ostream& out) const {
  PartWriter parts(out);
  parts.write(part::kHead, head_json(file));
  PackedBytes bytes;
  state_->texts.pack(bytes);
  parts.write(part::kTexts, bytes);
  bytes.clear();
  state_->shapes.pack(bytes);
  parts.write(part::kShapes, bytes);
  for (const State::LoggedTake& take : state_->takes) {
    parts.write(part::kTake, take_json(take.head));
    std::vector<GapPart::Born> before;
    for (const State::Before& one : take.before) before.push_back({one.storage, one.live.bytes.count});
    write_before(parts, before);
    write_chunks(parts, take.packed);
    parts.write(part::kTakeEnd, take_end_json(take.end.value_or(TakeEnd{figures, why, take.packed.events()})));
  }
  parts.finish();
}

}  // namespace ullage::trace
