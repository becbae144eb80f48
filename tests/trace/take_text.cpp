// SPDX-License-Identifier: Apache-2.0
#include "take_text.h"

#include "ullage/trace/meaning/levels.h"

#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

namespace ullage::trace::test {
namespace {

class Lines final {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    std::ostringstream line;
    line.precision(17);
    ((line << parts << ' '), ...);
    lines_.push_back(line.str());
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

std::string text(const std::vector<Knob>& knobs) {
  std::string all;
  for (const Knob& knob : knobs) all += knob.name + "=" + std::to_string(knob.value) + ";";
  return all;
}

std::string text(const Event& event) {
  struct Name {
    std::string operator()(const event::Allocation& e) { return "allocation " + std::to_string(e.storage.value); }
    std::string operator()(const event::FreeRequest& e) { return "free request " + std::to_string(e.storage.value); }
    std::string operator()(const event::Free& e) { return "free " + std::to_string(e.storage.value); }
    std::string operator()(const event::ReservedMore&) { return "reserved more"; }
    std::string operator()(const event::ReservedLess&) { return "reserved less"; }
    std::string operator()(const event::OutOfMemory& e) {
      return "out of memory " + std::to_string(e.requested.count) + " " + std::to_string(e.device_free.count) + " " +
             std::to_string(e.device_free_known);
    }
    std::string operator()(const event::OpBegin& e) { return "begin " + std::to_string(e.op.value); }
    std::string operator()(const event::OpEnd& e) { return "end " + std::to_string(e.op.value); }
    std::string operator()(const event::Save& e) {
      return "save " + std::to_string(e.storage.value) + " " + std::to_string(int(e.kind));
    }
    std::string operator()(const event::Unsave& e) { return "unsave " + std::to_string(e.storage.value); }
    std::string operator()(const event::Mark&) { return "mark"; }
  };
  return std::visit(Name{}, event.what) + " at " + (event.at ? std::to_string(event.at->count) : "none") + " stack " +
         std::to_string(event.stack.value);
}

std::string text(const TensorUse& use) {
  std::string all = " use " + std::to_string(use.storage.value) + "," + std::to_string(int(use.how)) + "," +
                    std::to_string(use.dtype) + "[";
  for (const std::int64_t size : use.sizes) all += std::to_string(size) + ",";
  return all + "]";
}

void add_ops(const Take& take, Lines& lines) {
  for (std::size_t i = 0; i < take.details.size(); ++i) {
    const OpDetail& one = take.details[i];
    std::string uses;
    for (const TensorUse& use : one.uses) uses += text(use);
    lines.add("op", take.trace.ops.at(i).name, take.trace.ops[i].stack.value, one.thread, one.backward, one.grad_mode,
              one.failed, one.sliced, one.outside.mapped, one.outside.other, "node", one.node, "layer", one.layer,
              "line", one.line, one.begin.value, one.end.value, one.took.count, uses);
  }
}

void add_trace(const Trace& trace, Lines& lines) {
  for (const Storage& one : trace.storages) {
    lines.add("storage", one.bytes.count, one.address.value, one.stream.value, one.stack.value, one.op.value,
              one.born.value, one.tensor_died.value, one.died.value, one.from_before);
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i) lines.add("event", i, text(trace.events[i]));
  lines.add("trace", trace.device, trace.annotations.size(), trace.live_before.count, trace.reserved_before.count,
            trace.complete, trace.inconsistencies.size());
}

void add_take(const Take& take, Lines& lines) {
  lines.add("take", text(take.knobs), int(take.end), take.trace.ops.size());
  add_trace(take.trace, lines);
  add_ops(take, lines);
  for (const auto& one : take.roles) {
    lines.add("role", one.at.value, one.storage.value, int(one.role), one.name);
  }
  for (const auto& one : take.borders) {
    lines.add("border", one.at.value, int(one.what), one.phase, text(one.knobs));
  }
  for (const auto& one : take.charges) lines.add("charge", one.at.value, one.bytes);
  for (const auto& one : take.gaps) lines.add("gap", one.at.value, one.events);
  const ProcessFigures& process = take.process;
  lines.add("process", process.peak.count, process.outside_peak.count, process.pool_live_peak.count,
            process.pool_resident_peak.count, process.threads, process.outside_expected.count);
}

bool knows_storage(const Take& take, StorageId id) { return id.value < take.trace.storages.size(); }

std::string broken_storage(const Trace& trace, const Storage& one) {
  const EventId end = trace.end();
  if (one.born > one.died || one.died > end || one.tensor_died != one.died) return "a life";
  if (one.from_before && one.born != EventId{}) return "born before, but not at event 0";
  if (!one.from_before && one.born >= end) return "born behind the end";
  if (one.op != kNoOp && one.op.value >= trace.ops.size()) return "an op";
  return {};
}

std::string broken_op(const Take& take, const OpDetail& one) {
  if (one.begin >= one.end || one.end > take.trace.end() || one.took.count < 0) return "an op's times";
  for (const TensorUse& use : one.uses) {
    if (!knows_storage(take, use.storage)) return "a use";
    for (const std::int64_t size : use.sizes) {
      if (size < 0) return "a size";
    }
  }
  return {};
}

// Checks that the event's storage or op exists and agrees about its begin and end.
std::string broken_event(const Take& take, std::size_t index) {
  const auto& what = take.trace.events[index].what;
  const EventId now{index};
  const auto storage = [&](StorageId id) { return knows_storage(take, id) ? &take.trace.storages[id.value] : nullptr; };
  const auto detail = [&](OpId id) { return id.value < take.details.size() ? &take.details[id.value] : nullptr; };
  if (const auto* e = std::get_if<event::Allocation>(&what)) {
    return storage(e->storage) && storage(e->storage)->born == now ? "" : "an allocation";
  }
  if (const auto* e = std::get_if<event::Free>(&what)) {
    return storage(e->storage) && storage(e->storage)->died == now ? "" : "a free";
  }
  if (const auto* e = std::get_if<event::OpBegin>(&what)) {
    return detail(e->op) && detail(e->op)->begin == now ? "" : "a begin";
  }
  if (const auto* e = std::get_if<event::OpEnd>(&what)) {
    return detail(e->op) && detail(e->op)->end == now ? "" : "an end";
  }
  if (const auto* e = std::get_if<event::Save>(&what)) return storage(e->storage) ? "" : "a save";
  if (const auto* e = std::get_if<event::Unsave>(&what)) return storage(e->storage) ? "" : "an unsave";
  return {};
}

std::string broken_lists(const Take& take) {
  const auto in_order = [&](const auto& list) {
    EventId last;
    for (const auto& one : list) {
      if (one.at < last || one.at > take.trace.end()) return false;
      last = one.at;
    }
    return true;
  };
  if (!in_order(take.roles) || !in_order(take.borders) || !in_order(take.charges) || !in_order(take.gaps)) {
    return "roles, borders, charges or gaps";
  }
  for (const RoleSeen& one : take.roles) {
    if (!knows_storage(take, one.storage)) return "a role";
  }
  for (const Gap& one : take.gaps) {
    if (one.at >= take.trace.end()) return "a gap";
    if (!std::holds_alternative<event::Mark>(take.trace.events[one.at.value].what)) return "a gap's mark";
  }
  return {};
}

}  // namespace

std::vector<std::string> lines_of(const Take& take) {
  Lines lines;
  add_take(take, lines);
  return lines.take();
}

std::vector<std::string> lines_of(const TraceFile& file) {
  Lines lines;
  lines.add("file", file.torch, file.device, file.onednn, text(file.at));
  for (const std::string& one : file.command) lines.add("command", one);
  for (const Choice& one : file.choices) {
    lines.add("choice", one.name, one.value);
    for (const std::int64_t value : one.values) lines.add("may be", value, one.word(value));
  }
  for (const ResultChange& one : file.changes) lines.add("change", one.what, one.results);
  for (const std::string& one : file.sides) lines.add("side", one);
  for (const std::string& one : file.phases_left_out) lines.add("left out", one);
  for (const Take& take : file.takes) add_take(take, lines);
  return lines.take();
}

std::string broken_invariant(const Take& take) {
  const Trace& trace = take.trace;
  if (take.details.size() != trace.ops.size()) return "details";
  Bytes before;
  bool complete = true;
  for (const Storage& one : trace.storages) {
    if (std::string broken = broken_storage(trace, one); !broken.empty()) return broken;
    if (one.from_before) before += one.bytes, complete = false;
  }
  if (before != trace.live_before || complete != trace.complete) return "what was before";
  for (const OpDetail& one : take.details) {
    if (std::string broken = broken_op(take, one); !broken.empty()) return broken;
  }
  std::int64_t time = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (std::string broken = broken_event(take, i); !broken.empty()) return broken;
    if (!trace.events[i].at || trace.events[i].at->count < time) return "a time";
    time = trace.events[i].at->count;
  }
  (void)levels(trace);  // throws if a level is negative or a sum exceeds 64 bits
  return broken_lists(take);
}

std::string written(const TraceFile& file) {
  std::ostringstream out;
  write_trace_file(file, out);
  return out.str();
}

Result<TraceFile> read_text(const std::string& content) {
  return read_trace_file(std::as_bytes(std::span(content)), "run.ullage");
}

}  // namespace ullage::trace::test
