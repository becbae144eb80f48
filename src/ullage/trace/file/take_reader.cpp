// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/take_reader.h"

#include <algorithm>
#include <utility>

namespace ullage::trace {
namespace {

constexpr const char* kUnknownStorage = "a storage that the take does not have";
constexpr const char* kUnknownText = "a name that the file does not have";
constexpr Bytes kAddressUnit{512};

}  // namespace

std::optional<OpId> TakeReader::known_op(std::uint64_t id) const {
  const auto place = ops_.find(id);
  return place ? std::optional(OpId{*place}) : std::nullopt;
}

const char* TakeReader::text(std::uint64_t number, std::string& to) {
  if (number >= tables_.texts.size()) return kUnknownText;
  if (!allowance_.spend(tables_.texts[number].size())) return kTooMuch;
  to = tables_.texts[number];
  return nullptr;
}

std::optional<Problem> TakeReader::begin(const TakeHead& head) {
  take_.knobs = head.knobs;
  now_ = {head.first_storage, head.first_op, 0, 0};
  return std::nullopt;
}

const char* TakeReader::add_storage(std::uint64_t id, std::uint64_t bytes, OpId op, bool from_before) {
  if (bytes > kMost - admitted_.count) return "bytes that no machine has";
  if (!allowance_.spend(sizeof(Storage))) return kTooMuch;
  admitted_ += Bytes{bytes};
  const EventId born = from_before ? EventId{} : take_.trace.end();
  const Address address{kAddressUnit.count + first_address_free_};
  first_address_free_ += round_up(Bytes{std::max<std::uint64_t>(bytes, 1)}, kAddressUnit).count;
  take_.trace.storages.push_back({Bytes{bytes}, address, {}, {}, op, born, kNever, kNever, from_before});
  storages_.add(id);
  return nullptr;
}

std::optional<Problem> TakeReader::before(std::span<const std::byte> content) {
  PackedReader in(content);
  const std::uint64_t count = in.number();
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t skipped = in.number();
    const std::uint64_t bytes = in.number();
    if (in.failed()) return Problem{"its list of storages from before the take is cut off", in.at()};
    if (skipped >= now_.next_storage - next)
      return Problem{"a storage from before the take was not allocated yet", in.at()};
    if (const char* problem = add_storage(next + skipped, bytes, kNoOp, true)) return Problem{problem, in.at()};
    take_.trace.live_before += Bytes{bytes};
    next += skipped + 1;
  }
  if (in.failed() || !in.done())
    return Problem{"other bytes follow its list of storages from before the take", in.at()};
  return std::nullopt;
}

std::optional<Problem> TakeReader::chunk(std::span<const std::byte> content) {
  PackedReader in(content);
  const Position begin{in.number(), in.number(), in.number(), in.number()};
  const std::uint64_t events = in.number();
  if (in.failed()) return Problem{"its events are cut off", in.at()};
  if (begin.next_storage != now_.next_storage || begin.next_op != now_.next_op || begin.micros != now_.micros ||
      begin.thread != now_.thread) {
    return Problem{"events that do not follow those before: storage " + std::to_string(begin.next_storage) + ", op " +
                       std::to_string(begin.next_op) + "; expected " + std::to_string(now_.next_storage) + " and " +
                       std::to_string(now_.next_op),
                   0};
  }
  const std::size_t offset = in.at();
  const std::size_t before = take_.trace.events.size();
  EventUnpacker unpacker(begin, content.subspan(offset));
  PackedEvent event;
  std::size_t at = 0;  // where the event begins
  while (unpacker.next(event)) {
    now_ = unpacker.now();
    if (const char* problem = add(event)) return Problem{problem, offset + at};
    at = unpacker.at();
  }
  if (unpacker.problem() != nullptr) return Problem{unpacker.problem(), offset + at};
  if (take_.trace.events.size() - before != events) {
    return Problem{
        "the events are " + std::to_string(take_.trace.events.size() - before) + ", stated " + std::to_string(events),
        0};
  }
  events_ += events;
  return std::nullopt;
}

const char* TakeReader::set_event(auto what) {
  if (!allowance_.spend(sizeof(Event))) return kTooMuch;
  take_.trace.events.push_back({what, Microseconds{static_cast<std::int64_t>(now_.micros)}, {}});
  return nullptr;
}

const char* TakeReader::add(const PackedEvent& event) {
  const auto known = [&] { return storages_.find(event.id); };
  switch (event.kind) {
    case PackedKind::Allocation: {
      const auto op = event.in_op ? known_op(event.op) : kNoOp;  // none if the op's begin was lost
      if (const char* problem = add_storage(event.id, event.amount, op.value_or(kNoOp), false)) return problem;
      return set_event(event::Allocation{{take_.trace.storages.size() - 1}});
    }
    case PackedKind::Free:
      if (const char* problem = die(event.id)) return problem;
      return set_event(event::Free{{*known()}});
    case PackedKind::OpBegin:
      return begin_op(event);
    case PackedKind::OpEnd:
      return end_op(event);
    case PackedKind::Save:
      if (!known() || event.flags > 2) return kUnknownStorage;
      return set_event(event::Save{{*known()}, static_cast<SavedKind>(event.flags)});
    case PackedKind::Unsave:
      if (!known()) return kUnknownStorage;
      return set_event(event::Unsave{{*known()}});
    case PackedKind::OutOfMemory:
      if (event.amount > kMost) return "bytes that no machine has";
      return set_event(event::OutOfMemory{Bytes{event.amount}, {}, false});
    case PackedKind::Mark:
      return set_event(event::Mark{});
    case PackedKind::Role:
      return add_role(event);
    case PackedKind::Border:
      return add_border(event);
    case PackedKind::Charge:
      return add_charge(unfold(event.amount));
    case PackedKind::Line:
      return nullptr;  // EventUnpacker puts the line into the ops that follow
    case PackedKind::kEnd:
      break;
  }
  return "an event of no known kind";
}

const char* TakeReader::die(std::uint64_t id) {
  const auto place = storages_.find(id);
  if (!place) return kUnknownStorage;
  Storage& one = take_.trace.storages[*place];
  if (one.died != kNever) return "a storage that is freed twice";
  one.tensor_died = one.died = take_.trace.end();
  return nullptr;
}

const char* TakeReader::begin_op(const PackedEvent& event) {
  if (!allowance_.spend(sizeof(Op) + sizeof(OpDetail))) return kTooMuch;
  if (now_.thread > UINT32_MAX) return "a thread with a number that cannot be";
  Op op;
  OpDetail detail;
  for (const auto& [number, to] : {std::pair{event.name, &op.name}, std::pair{event.node, &detail.node},
                                   std::pair{event.layer, &detail.layer}, std::pair{event.line, &detail.line}}) {
    if (const char* problem = text(number, *to)) return problem;
  }
  detail.thread = static_cast<std::uint32_t>(now_.thread);
  detail.backward = (event.flags & kBackward) != 0;
  detail.grad_mode = (event.flags & kGradMode) != 0;
  detail.sliced = (event.flags & kSliced) != 0;
  detail.begin = take_.trace.end();
  detail.end = kNever;
  if (const char* problem = add_uses(event, detail)) return problem;
  const OpId id{take_.details.size()};
  take_.trace.ops.push_back(std::move(op));
  take_.details.push_back(std::move(detail));
  ops_.add(event.id);
  return set_event(event::OpBegin{id});
}

const char* TakeReader::end_op(const PackedEvent& event) {
  if (event.amount > kMost) return "a time that cannot be";
  const auto op = known_op(event.id);
  if (!op) return take_.gaps.empty() ? "the end of an op that the take does not have" : set_event(event::Mark{});
  OpDetail& detail = take_.details[op->value];
  if (detail.end != kNever) return "an op that ends twice";
  detail.end = take_.trace.end();
  detail.took = Seconds{static_cast<double>(event.amount) / 1e9};
  detail.failed = (event.flags & kFailed) != 0;
  detail.outside = {(event.flags & kReadsMapped) != 0, (event.flags & kReadsOther) != 0};
  if (const char* problem = add_uses(event, detail)) return problem;
  return set_event(event::OpEnd{*op});
}

const char* TakeReader::add_uses(const PackedEvent& event, OpDetail& detail) {
  for (const PackedUse& use : event.uses) {
    const auto storage = storages_.find(use.storage);
    if (!storage) return kUnknownStorage;
    if (use.shape >= std::max<std::size_t>(tables_.shapes.size(), 1)) return "a shape that the file does not have";
    const bool in_table = use.shape != 0;
    const auto& sizes = in_table ? tables_.shapes[use.shape].sizes : use.sizes;
    if (!allowance_.spend(sizeof(TensorUse) + sizes.size() * sizeof(std::int64_t))) return kTooMuch;
    const std::uint8_t dtype = in_table ? tables_.shapes[use.shape].dtype : use.dtype;
    detail.uses.push_back({StorageId{*storage}, use.how, dtype, sizes});
  }
  return nullptr;
}

const char* TakeReader::add_role(const PackedEvent& event) {
  const auto storage = storages_.find(event.id);
  if (!storage) return kUnknownStorage;
  if (!allowance_.spend(sizeof(RoleSeen))) return kTooMuch;
  RoleSeen one{take_.trace.end(), StorageId{*storage}, static_cast<Role>(event.flags), {}};
  if (const char* problem = text(event.name, one.name)) return problem;
  take_.roles.push_back(std::move(one));
  return nullptr;
}

const char* TakeReader::add_border(const PackedEvent& event) {
  if (!allowance_.spend(sizeof(ReportedBorder) + event.knobs.size() * sizeof(Knob))) return kTooMuch;
  ReportedBorder border{take_.trace.end(), static_cast<ReportedBorder::What>(event.flags), {}, {}};
  if (const char* problem = text(event.name, border.phase)) return problem;
  for (const PackedKnob& knob : event.knobs) {
    border.knobs.push_back({{}, knob.value});
    if (const char* problem = text(knob.name, border.knobs.back().name)) return problem;
  }
  take_.borders.push_back(std::move(border));
  return nullptr;
}

const char* TakeReader::add_charge(std::int64_t bytes) {
  const std::uint64_t size = bytes < 0 ? -static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
  if (size > kMost - charged_) return "bytes that no machine has";
  if (!allowance_.spend(sizeof(Charged))) return kTooMuch;
  charged_ += size;
  take_.charges.push_back({take_.trace.end(), bytes});
  return nullptr;
}

std::optional<Problem> TakeReader::end(const TakeEnd& end) {
  if (end.events != events_) {
    return Problem{"the take's events are " + std::to_string(events_) + ", stated " + std::to_string(end.events), 0};
  }
  take_.process = end.process;
  take_.end = end.why;
  Trace& trace = take_.trace;
  const EventId last = trace.end();
  for (Storage& one : trace.storages) {
    if (one.died == kNever) one.tensor_died = one.died = last;
  }
  for (OpDetail& one : take_.details) {
    if (one.end == kNever) one.end = last;
  }
  trace.complete = std::ranges::none_of(trace.storages, &Storage::from_before);
  return std::nullopt;
}

}  // namespace ullage::trace
