// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/convert.h"

#include "ullage/base/sizes.h"
#include "ullage/report/convert/chrome_trace.h"
#include "ullage/report/convert/event_axis.h"
#include "ullage/report/convert/rows.h"
#include "ullage/report/input_history.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace ullage::report {
namespace {

constexpr std::size_t kMostSlices = 2000;  // the largest storages of a device; viewers get slow with more rows
constexpr std::size_t kMostSliceFrames = 24;
constexpr unsigned kFirstAnnotationRow = 1;
constexpr unsigned kFirstStorageRow = 100'000;  // after the rows of ops

constexpr unsigned kFirstOpRow = 1001;
constexpr std::uint32_t kMostThreads = 1000;  // threads with higher numbers share the last row

unsigned row_of(std::uint32_t thread) { return kFirstOpRow + std::min(thread, kMostThreads); }

std::string args_of(const trace::OpDetail& detail) {
  return fmt::format(
      R"({{"layer":{},"node":{},"line":{},"backward":{},"grad_mode":{},"failed":{},"sliced":{},"tensors":{}}})",
      json_text(detail.layer), json_text(detail.node), json_text(detail.line), detail.backward, detail.grad_mode,
      detail.failed, detail.sliced, detail.uses.size());
}

void write_saves(const trace::Take& take, const EventAxis& axis, unsigned process, ChromeTrace& out) {
  std::uint32_t thread = 0;  // thread of the latest op event; saves happen within ops
  for (std::size_t i = 0; i < take.trace.events.size(); ++i) {
    const auto& what = take.trace.events[i].what;
    if (const auto* begun = std::get_if<trace::event::OpBegin>(&what)) thread = take.details[begun->op.value].thread;
    if (const auto* ended = std::get_if<trace::event::OpEnd>(&what)) thread = take.details[ended->op.value].thread;
    const auto* save = std::get_if<trace::event::Save>(&what);
    if (!save || save->kind != trace::SavedKind::Activation) continue;
    const Bytes bytes = take.trace.storages[save->storage.value].bytes;
    out.instant(process, row_of(thread), fmt::format("saves {}", to_string(bytes)), axis.of(EventId{i}),
                fmt::format(R"({{"storage":{},"bytes":{}}})", save->storage.value, bytes.count));
  }
}

// Writes the ops of a trace as slices, in a row for each thread from row 1001 on. Saves of autograd are instants on
// them. A viewer draws nested slices of a row inside each other.
void write_ops(const InputHistory& history, const EventAxis& axis, unsigned process, ChromeTrace& out) {
  const trace::Take& take = *history.take;
  std::set<std::uint32_t> threads;
  for (const trace::OpDetail& detail : take.details) threads.insert(std::min(detail.thread, kMostThreads));
  for (const std::uint32_t thread : threads) {
    out.name_row(process, row_of(thread), fmt::format("ops of thread {}", thread));
  }
  for (std::size_t i = 0; i < take.details.size(); ++i) {
    const trace::OpDetail& detail = take.details[i];
    const std::int64_t begin = axis.of(detail.begin);
    const std::string& name = history.known.meanings[take.trace.ops[i].stack.value].name;
    out.slice(process, row_of(detail.thread), name, begin, std::max(begin, axis.of(detail.end)), args_of(detail));
  }
  write_saves(take, axis, process, out);
}

struct Slice {
  Extent extent;
  std::string name;
  std::string args;
};

class DeviceWriter final {
 public:
  DeviceWriter(const InputHistory& history, unsigned process, ChromeTrace& out)
      : history_(history),
        trace_(history.trace()),
        meanings_(history.known.meanings),
        process_(process),
        out_(out),
        axis_(trace_) {}

  void write() {
    const std::string& name = history_.name;
    out_.name_process(process_, axis_.timed() ? name : fmt::format("{} (by event: the file has no times)", name));
    write_levels();
    write_instants();
    write_rows(annotations(), kFirstAnnotationRow, "annotations");
    if (history_.take != nullptr) write_ops(history_, axis_, process_, out_);
    write_rows(largest_storages(), kFirstStorageRow, "largest storages");
  }

 private:
  void write_levels() {
    const trace::Levels levels = trace::levels(trace_);
    out_.counter(process_, "live bytes", 0, trace_.live_before.count);
    const bool pool = history_.take == nullptr;  // a trace has no reserved bytes of its own
    if (pool) out_.counter(process_, "reserved bytes", 0, std::max(trace_.reserved_before, trace_.live_before).count);
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const std::int64_t at = axis_.of(EventId{i});
      if (i == 0 || levels.live[i] != levels.live[i - 1])
        out_.counter(process_, "live bytes", at, levels.live[i].count);
      if (pool && (i == 0 || levels.reserved[i] != levels.reserved[i - 1]))
        out_.counter(process_, "reserved bytes", at, levels.reserved[i].count);
    }
  }

  void write_instants() {
    for (std::size_t i = 0; i < trace_.events.size(); ++i)
      if (const auto* failed = std::get_if<trace::event::OutOfMemory>(&trace_.events[i].what))
        out_.instant(process_, fmt::format("out of memory: {} asked for", to_string(failed->requested)),
                     axis_.of(EventId{i}));
  }

  std::vector<Slice> largest_storages() const {
    std::vector<std::size_t> order(trace_.storages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t most = std::min(kMostSlices, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                      [&](std::size_t a, std::size_t b) {
                        const Bytes x = trace_.storages[a].bytes, y = trace_.storages[b].bytes;
                        return x != y ? x > y : a < b;
                      });
    std::vector<Slice> slices;
    for (std::size_t i = 0; i < most; ++i) {
      const trace::Storage& storage = trace_.storages[order[i]];
      const std::int64_t begin = storage.from_before ? 0 : axis_.of(storage.born);
      slices.push_back({{begin, std::max(begin, axis_.of(storage.died))}, name_of(storage), args_of(order[i])});
    }
    return slices;
  }

  std::string name_of(const trace::Storage& storage) const {
    const std::string& owner = meanings_[storage.stack.value].name;
    const std::string size = to_string(storage.bytes);
    return owner.empty() ? size : fmt::format("{} {}", size, owner);
  }

  std::string args_of(std::size_t index) const {
    const trace::Storage& storage = trace_.storages[index];
    const trace::StackMeaning& meaning = meanings_[storage.stack.value];
    // In a snapshot the stack tells the category; a trace knows it for each storage.
    const trace::Category category = history_.take != nullptr ? history_.known.categories[index] : meaning.category;
    const auto stack = history_.stacks->frames(storage.stack);
    std::string frames;
    for (const trace::FrameId id : stack.first(std::min(kMostSliceFrames, stack.size()))) {
      const trace::Frame& frame = history_.stacks->frame(id);
      if (!frames.empty()) frames += ',';
      frames += json_text(fmt::format("{}:{} {}", frame.file, frame.line, frame.function));
    }
    const std::string address =
        history_.take == nullptr ? fmt::format(R"("address":"{:#x}",)", storage.address.value) : std::string();
    return fmt::format(R"({{"bytes":{},"category":{},"phase":{},{}"before":{},"frames":[{}]}})", storage.bytes.count,
                       json_text(trace::name(category)), json_text(trace::name(meaning.phase)), address,
                       storage.from_before, frames);
  }

  // A start without an end lasts to the end of the history. An end without a start begins with the history.
  std::vector<Slice> annotations() const {
    std::vector<Slice> slices;
    if (!axis_.timed()) return slices;
    std::map<std::string_view, std::vector<std::int64_t>> open;
    const auto add = [&](std::string_view name, std::int64_t begin, std::int64_t end) {
      slices.push_back({{begin, std::max(begin, end)}, std::string(name), "{}"});
    };
    for (const trace::Annotation& annotation : trace_.annotations) {
      auto& begins = open[annotation.name];
      if (annotation.start) {
        begins.push_back(axis_.of(annotation.at));
      } else if (begins.empty()) {
        add(annotation.name, 0, axis_.of(annotation.at));
      } else {
        add(annotation.name, begins.back(), axis_.of(annotation.at));
        begins.pop_back();
      }
    }
    for (const auto& [name, begins] : open)
      for (const std::int64_t begin : begins) add(name, begin, axis_.end());
    return slices;
  }

  void write_rows(const std::vector<Slice>& slices, unsigned first_row, std::string_view name) {
    std::vector<Extent> extents;
    extents.reserve(slices.size());
    for (const Slice& slice : slices) extents.push_back(slice.extent);
    const std::vector<unsigned> rows = rows_of(extents);
    unsigned named = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      for (; named <= rows[i]; ++named)
        out_.name_row(process_, first_row + named, fmt::format("{} {}", name, named + 1));
      out_.slice(process_, first_row + rows[i], slices[i].name, slices[i].extent.begin, slices[i].extent.end,
                 slices[i].args);
    }
  }

  const InputHistory& history_;
  const trace::Trace& trace_;
  const std::vector<trace::StackMeaning>& meanings_;
  unsigned process_;
  ChromeTrace& out_;
  EventAxis axis_;
};

}  // namespace

Status write_perfetto(const trace::Input& input, std::ostream& out) {
  if (std::holds_alternative<trace::Log>(input))
    return Error{
        Error::Kind::BadArgument,
        "a log has no history that could be drawn; give a memory snapshot, a profiler trace or a trace of Ullage",
        "--convert perfetto"};
  ChromeTrace chrome(out, R"({"source":"ullage explain --convert perfetto"})");
  unsigned process = 0;
  each_history(input, [&](const InputHistory& history) { DeviceWriter(history, ++process, chrome).write(); });
  chrome.finish();
  return success();
}

}  // namespace ullage::report
