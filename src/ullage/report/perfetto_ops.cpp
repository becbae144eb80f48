// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/perfetto_ops.h"

#include "ullage/base/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ullage::report {
namespace {

constexpr unsigned kFirstRow = 1001;
constexpr std::uint32_t kMostThreads = 1000;  // of a file that says more, the rest stands in the last row

unsigned row_of(std::uint32_t thread) { return kFirstRow + std::min(thread, kMostThreads); }

std::string args_of(const trace::OpDetail& detail) {
  return fmt::format(
      R"({{"layer":{},"node":{},"line":{},"backward":{},"grad_mode":{},"failed":{},"sliced":{},"tensors":{}}})",
      json_text(detail.layer), json_text(detail.node), json_text(detail.line), detail.backward, detail.grad_mode,
      detail.failed, detail.sliced, detail.uses.size());
}

void write_saves(const trace::Take& take, const EventAxis& axis, unsigned process, ChromeTrace& out) {
  std::uint32_t thread = 0;  // of the event before: saves stand within ops
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

}  // namespace

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

}  // namespace ullage::report
