// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/op_times.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace ullage::predict {
namespace {

double elements(const trace::TensorUse& use) {
  double all = 1;
  for (const std::int64_t size : use.sizes) all *= static_cast<double>(size);
  return all;
}

double growth(const trace::OpDetail& from, const trace::OpDetail& to) {
  double most = 0;
  for (std::size_t i = 0; i < from.uses.size(); ++i) {
    const double before = elements(from.uses[i]);
    if (before > 0) most = std::max(most, elements(to.uses[i]) / before);
  }
  return most > 0 ? most : 1;
}

// Finds the op that runs at an event: the last one begun that has not ended.
class Running final {
 public:
  void see(const trace::Event& event) {
    if (const auto* begin = std::get_if<trace::event::OpBegin>(&event.what)) ops_.push_back(begin->op);
    if (const auto* end = std::get_if<trace::event::OpEnd>(&event.what)) std::erase(ops_, end->op);
  }
  OpId now() const { return ops_.empty() ? trace::kNoOp : ops_.back(); }

 private:
  std::vector<OpId> ops_;
};

}  // namespace

void estimate_times(const trace::Take& measured, const trace::Take& copied, trace::Take& evaluated) {
  std::vector<double> slower(evaluated.details.size(), 1);  // factor relative to `copied`; index: OpId
  for (std::size_t op = 0; op < slower.size() && op < measured.details.size(); ++op) {
    Seconds& took = evaluated.details[op].took;
    took = Seconds{measured.details[op].took.count * growth(measured.details[op], evaluated.details[op])};
    if (copied.details[op].took > Seconds{}) slower[op] = took.count / copied.details[op].took.count;
  }
  Running running;
  double now = 0;
  std::int64_t last = 0;
  for (trace::Event& event : evaluated.trace.events) {
    if (event.at) {
      const OpId op = running.now();
      const double factor = op == trace::kNoOp ? 1 : slower[op.value];
      now += static_cast<double>(event.at->count - last) * factor;
      last = event.at->count;
      event.at = trace::Microseconds{static_cast<std::int64_t>(now)};
    }
    running.see(event);
  }
}

}  // namespace ullage::predict
