// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/packed_events.h"

namespace ullage::trace {
namespace {

constexpr std::uint64_t kMostMicros = 1ull << 62;
constexpr std::size_t kLeastUse = 2;   // the least bytes of a packed use
constexpr std::size_t kLeastKnob = 2;  // the least bytes of a packed knob

}  // namespace

void EventUnpacker::fail(const char* problem) {
  if (problem_ == nullptr) problem_ = problem;
}

std::uint64_t EventUnpacker::earlier(std::uint64_t next, const char* problem) {
  const std::uint64_t back = in_.number();
  if (back != 0 && back <= next) return next - back;
  fail(problem);
  return 0;
}

std::uint64_t EventUnpacker::storage() { return earlier(now_.next_storage, "a storage that was not allocated yet"); }

bool EventUnpacker::next(PackedEvent& event) {
  if (problem_ != nullptr || in_.done()) return false;
  const std::uint8_t tag = in_.byte();
  event.kind = static_cast<PackedKind>(tag & 15);
  event.flags = tag >> 4;
  event.uses.clear();
  event.knobs.clear();
  if (event.kind >= PackedKind::kEnd) return fail("an event of no known kind"), false;
  if ((event.flags & ~kFlags[tag & 15]) != 0) return fail("an event with a flag that its kind does not have"), false;
  if (is_event(event.kind)) {
    const std::uint64_t later = in_.number();
    if (later > kMostMicros - now_.micros) return fail("a time that cannot be"), false;
    now_.micros += later;
  }
  body(event);
  if (in_.failed()) fail("an event is cut off");
  return problem_ == nullptr;
}

void EventUnpacker::body(PackedEvent& event) {
  switch (event.kind) {
    case PackedKind::Allocation:
      event.amount = in_.number();
      event.in_op = (event.flags & kNotInOp) == 0;
      if (event.in_op) event.op = earlier(now_.next_op, "an op that did not begin yet");
      event.id = now_.next_storage++;
      return;
    case PackedKind::Free:
    case PackedKind::Save:
    case PackedKind::Unsave:
      event.id = storage();
      return;
    case PackedKind::OpBegin:
      return op_begin(event);
    case PackedKind::OpEnd:
      event.id = earlier(now_.next_op, "an op that did not begin yet");
      event.amount = in_.number();
      return uses(event);
    case PackedKind::OutOfMemory:
    case PackedKind::Charge:
      event.amount = in_.number();
      return;
    case PackedKind::Role:
      event.id = storage();
      event.name = in_.number();
      return;
    case PackedKind::Border:
      return border(event);
    case PackedKind::Line:
      event.name = line_ = in_.number();
      return;
    case PackedKind::Mark:
    case PackedKind::kEnd:
      return;
  }
}

void EventUnpacker::op_begin(PackedEvent& event) {
  event.id = now_.next_op++;
  event.name = in_.number();
  event.node = in_.number();
  event.layer = in_.number();
  event.line = line_;
  if ((event.flags & kOtherThread) != 0) now_.thread = in_.number();
  uses(event);
}

void EventUnpacker::uses(PackedEvent& event) {
  const std::uint64_t count = in_.number();
  if (count > in_.left() / kLeastUse) return fail("an event is cut off");
  event.uses.resize(count);
  for (PackedUse& use : event.uses) {
    use.storage = storage();
    const std::uint64_t what = in_.number();
    if ((what & 3) > 2) return fail("a use of no known kind");
    use.how = static_cast<TensorUse::How>(what & 3);
    use.shape = what >> 2;
    use.sizes.clear();
    if (use.shape != 0) continue;
    use.dtype = in_.byte();
    const std::uint64_t sizes = in_.number();
    if (sizes > in_.left()) return fail("an event is cut off");
    use.sizes.resize(sizes);
    for (std::int64_t& size : use.sizes) {
      const std::uint64_t value = in_.number();
      if (value > INT64_MAX) return fail("a size of a tensor is above 2^63 - 1");
      size = static_cast<std::int64_t>(value);
    }
  }
}

void EventUnpacker::border(PackedEvent& event) {
  if (event.flags > 2) return fail("a border of no known kind");
  event.name = in_.number();
  const std::uint64_t count = in_.number();
  if (count > in_.left() / kLeastKnob) return fail("an event is cut off");
  event.knobs.resize(count);
  for (PackedKnob& knob : event.knobs) {
    knob.name = in_.number();
    knob.value = unfold(in_.number());
  }
}

}  // namespace ullage::trace
