// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/event_text.h"

#include "ullage/base/sizes.h"

#include <algorithm>
#include <variant>

namespace ullage::predict {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string size_of(const trace::Take& take, StorageId id) { return to_string(take.trace.storages[id.value].bytes); }

std::string action(const trace::Take& take, const trace::Event& event) {
  namespace e = trace::event;
  return std::visit(
      Overloaded{
          [&](const e::Allocation& x) { return "makes " + size_of(take, x.storage); },
          [&](const e::Free& x) { return "frees " + size_of(take, x.storage); },
          [&](const e::FreeRequest& x) { return "asks to free " + size_of(take, x.storage); },
          [&](const e::OpBegin&) { return std::string("begins"); },
          [&](const e::OpEnd&) { return std::string("ends"); },
          [&](const e::Save& x) { return "saves " + size_of(take, x.storage) + " for the backward pass"; },
          [&](const e::Unsave& x) { return "gives up " + size_of(take, x.storage) + " saved for the backward pass"; },
          [&](const e::OutOfMemory& x) { return "is refused " + to_string(x.requested); },
          [&](const e::ReservedMore& x) { return "takes " + to_string(x.bytes) + " from the device"; },
          [&](const e::ReservedLess& x) { return "gives " + to_string(x.bytes) + " back to the device"; },
          [&](const e::Mark&) { return std::string("does something that changes no bytes"); },
      },
      event.what);
}

// Returns where in the program the event is, as ", in backward, of layer1, step 2". Counts steps from 1; the event at a
// step's end belongs to the next step. Names no step if a phase is named, or if no step's end was reported.
std::string place(const trace::Take& take, OpId op, EventId event) {
  std::string text;
  if (op != trace::kNoOp) {
    const trace::OpDetail& detail = take.details[op.value];
    if (detail.backward) text += ", in backward";
    if (!detail.layer.empty()) text += ", of " + detail.layer;
  }
  if (const std::string phase = phase_around(take, event); !phase.empty()) return text + ", in " + phase;
  const auto is_end = [](const trace::ReportedBorder& b) { return b.what == trace::ReportedBorder::What::StepEnd; };
  if (std::ranges::none_of(take.borders, is_end)) return text;
  const auto before =
      std::ranges::count_if(take.borders, [&](const auto& border) { return is_end(border) && border.at <= event; });
  return text + ", step " + std::to_string(before + 1);
}

}  // namespace

OpId op_at(const trace::Take& take, EventId event) {
  const std::vector<trace::Event>& events = take.trace.events;
  if (event.value >= events.size()) return trace::kNoOp;
  if (const auto* begun = std::get_if<trace::event::OpBegin>(&events[event.value].what)) return begun->op;
  if (const auto* ended = std::get_if<trace::event::OpEnd>(&events[event.value].what)) return ended->op;
  if (const auto* born = std::get_if<trace::event::Allocation>(&events[event.value].what)) {
    const OpId op = take.trace.storages[born->storage.value].op;
    if (op != trace::kNoOp) return op;
  }
  std::vector<OpId> open;
  for (std::size_t i = 0; i < event.value; ++i) {
    if (const auto* begun = std::get_if<trace::event::OpBegin>(&events[i].what)) open.push_back(begun->op);
    if (const auto* ended = std::get_if<trace::event::OpEnd>(&events[i].what)) std::erase(open, ended->op);
  }
  return open.empty() ? trace::kNoOp : open.back();
}

std::string phase_around(const trace::Take& take, EventId event) {
  std::string phase;
  for (const trace::ReportedBorder& border : take.borders) {
    if (border.at > event) break;
    if (border.what == trace::ReportedBorder::What::PhaseBegin) phase = border.phase;
    if (border.what == trace::ReportedBorder::What::PhaseEnd) phase.clear();
  }
  return phase;
}

std::string what_happens(const trace::Take& take, EventId event) {
  if (event.value >= take.trace.events.size()) return "the program ends";
  const OpId op = op_at(take, event);
  std::string who = "the program, outside of ops,";
  if (op != trace::kNoOp) {
    who = take.trace.ops[op.value].name;
    if (const std::string& node = take.details[op.value].node; !node.empty()) who += " (" + node + ")";
  }
  return who + " " + action(take, take.trace.events[event.value]) + place(take, op, event);
}

std::string knobs_text(const std::vector<Knob>& knobs) {
  std::string text;
  for (const Knob& knob : knobs) {
    text += (text.empty() ? "" : ", ") + knob.name + "=" + std::to_string(knob.value);
  }
  return text;
}

std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string count_of(std::uint64_t count, const std::string& what) {
  return count_text(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace ullage::predict
