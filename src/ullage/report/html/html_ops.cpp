// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_timeline.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

namespace ullage::report {
namespace {

// Finds the op of each event: the one that an allocation, a begin or an end names. At other events it is the op in
// flight on the thread of the latest begin or end.
class RunningOps final {
 public:
  explicit RunningOps(const trace::Take& take) : take_(take) {}

  OpId at(const trace::Event& event) {
    if (const auto* begun = std::get_if<trace::event::OpBegin>(&event.what)) return begin(begun->op);
    if (const auto* ended = std::get_if<trace::event::OpEnd>(&event.what)) return end(ended->op);
    if (const auto* born = std::get_if<trace::event::Allocation>(&event.what)) {
      return take_.trace.storages[born->storage.value].op;
    }
    const auto& open = in_flight_[thread_];
    return open.empty() ? trace::kNoOp : open.back();
  }

 private:
  OpId begin(OpId op) {
    thread_ = take_.details[op.value].thread;
    in_flight_[thread_].push_back(op);
    return op;
  }
  OpId end(OpId op) {
    thread_ = take_.details[op.value].thread;
    std::erase(in_flight_[thread_], op);
    return op;
  }

  const trace::Take& take_;
  std::map<std::uint32_t, std::vector<OpId>> in_flight_;  // by thread, the innermost last
  std::uint32_t thread_ = 0;
};

// Returns "aten::convolution_backward ConvolutionBackward0 of net.2". An op of the backward pass has no layer in its
// name, so the layer is added.
std::string name_of(const InputHistory& history, OpId op) {
  const trace::OpDetail& detail = history.take->details[op.value];
  std::string name = history.known.meanings[history.take->trace.ops[op.value].stack.value].name;
  if (!detail.node.empty() && !detail.layer.empty()) name += " of " + detail.layer;
  return name + diagnose::line_in_words(detail.line);
}

}  // namespace

void add_ops(const InputHistory& history, Timeline& timeline) {
  if (history.take == nullptr || history.take->details.empty()) return;
  const trace::Take& take = *history.take;
  RunningOps running(take);
  std::unordered_map<std::string, std::int64_t> known;
  std::size_t next = 0;  // index in `moments`
  const auto add = [&](OpId op) {
    if (op.value >= take.details.size()) return timeline.op_at.push_back(-1);
    const auto [place, is_new] = known.try_emplace(name_of(history, op), std::int64_t(timeline.ops.size()));
    if (is_new) timeline.ops.push_back(place->first);
    timeline.op_at.push_back(place->second);
  };
  for (std::size_t e = 0; e <= take.trace.events.size() && next < timeline.moments.size(); ++e) {
    const OpId op = e == 0 ? trace::kNoOp : running.at(take.trace.events[e - 1]);
    if (timeline.moments[next] != e) continue;
    add(op);
    ++next;
  }
}

}  // namespace ullage::report
