// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/worker_ops.h"

#include "ullage/predict/removal.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::predict {
namespace {

namespace e = trace::event;

// Marks, by OpId, the ops that begin and end within an op of another thread, while no other op of their own thread
// runs.
std::vector<bool> worker_ops(const trace::Take& take) {
  std::vector<bool> worker(take.details.size());
  std::vector<OpId> open;
  for (const trace::Event& event : take.trace.events) {
    if (const auto* begun = std::get_if<e::OpBegin>(&event.what)) {
      const trace::OpDetail& op = take.details[begun->op.value];
      const auto same_thread = [&](OpId id) { return take.details[id.value].thread == op.thread && !worker[id.value]; };
      const auto around = [&](OpId id) { return !worker[id.value] && take.details[id.value].end > op.end; };
      worker[begun->op.value] = std::ranges::none_of(open, same_thread) && std::ranges::any_of(open, around);
      open.push_back(begun->op);
    } else if (const auto* ended = std::get_if<e::OpEnd>(&event.what)) {
      std::erase(open, ended->op);
    }
  }
  return worker;
}

}  // namespace

std::optional<trace::TraceFile> without_worker_ops(const trace::TraceFile& file) {
  std::vector<std::vector<bool>> ops;
  bool any = false;
  for (const trace::Take& take : file.takes) {
    ops.push_back(worker_ops(take));
    any |= std::ranges::find(ops.back(), true) != ops.back().end();
  }
  if (!any) return std::nullopt;
  trace::TraceFile plain = file;
  for (std::size_t i = 0; i < plain.takes.size(); ++i) remove_ops(plain.takes[i], std::move(ops[i]));
  return plain;
}

}  // namespace ullage::predict
