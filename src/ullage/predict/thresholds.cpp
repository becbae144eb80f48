// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/thresholds.h"

#include <algorithm>
#include <unordered_set>

namespace ullage::predict {
namespace {

using trace::OpDetail;
using trace::Take;
using trace::TensorUse;
using Counts = std::vector<std::int64_t>;

// The product of the sizes. Sizes come from files and may be any numbers. If the product does not fit, it is set to
// 2^63 - 1, which is on the far side of any threshold.
std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(elements, size, &elements)) return INT64_MAX;
  }
  return elements;
}

// The first tensor that the op reads, or writes in place.
const TensorUse* first_read(const OpDetail& op) {
  for (const TensorUse& use : op.uses)
    if (use.how != TensorUse::How::Output) return &use;
  return nullptr;
}

// The sides of a convolution's kernel, in pixels. Only tensors of rank 3 or more are looked at. Among these a
// convolution reads the input and the weights; its backward op reads the output's gradient, the input and the weights.
Counts kernel_of(const OpDetail& op) {
  std::vector<const TensorUse*> read;
  for (const TensorUse& use : op.uses)
    if (use.how == TensorUse::How::Read && use.sizes.size() > 2) read.push_back(&use);
  if (read.size() < 2) return {};
  const std::vector<std::int64_t>& weights = read[std::min<std::size_t>(read.size(), 3) - 1]->sizes;
  return Counts(weights.begin() + 2, weights.end());
}

bool is_pointwise(const OpDetail& op) {
  return std::any_of(op.uses.begin(), op.uses.end(), [](const TensorUse& use) {
    return use.how == TensorUse::How::Read && use.sizes.size() > 2 &&
           std::all_of(use.sizes.begin() + 2, use.sizes.end(), [](std::int64_t size) { return size == 1; });
  });
}

void add_counts_of(const TensorUse& use, Quantity quantity, Counts& counts) {
  const std::vector<std::int64_t>& sizes = use.sizes;
  switch (quantity) {
    case Quantity::Dimensions:
      counts.insert(counts.end(), sizes.begin(), sizes.end());
      return;
    case Quantity::Elements:
      counts.push_back(product(sizes));
      return;
    case Quantity::Features:
      if (sizes.size() > 1) counts.push_back(product(std::span(sizes).subspan(1)));
      return;
    case Quantity::Rows:
      if (sizes.size() > 1) counts.push_back(sizes[sizes.size() - 2]);
      return;
    default:
      return;
  }
}

Counts counts_of_first(const OpDetail& op, Quantity quantity) {
  const TensorUse* first = first_read(op);
  if (first == nullptr || first->sizes.empty()) return {};
  switch (quantity) {
    case Quantity::Batch:
      return {first->sizes[0]};
    case Quantity::PointwiseBatch:
      return {is_pointwise(op) ? first->sizes[0] : 0};
    case Quantity::Kernel:
      return kernel_of(op);
    case Quantity::LonePicture:
      return {first->sizes[0] == 1 ? product(first->sizes) : 0};
    default:
      return {};
  }
}

}  // namespace

Counts counts_of(const OpDetail& op, Quantity quantity) {
  Counts counts = counts_of_first(op, quantity);
  for (const TensorUse& use : op.uses) add_counts_of(use, quantity, counts);
  return counts;
}

std::uint32_t threads_of(const Take& take) { return take.process.threads == 0 ? 2 : take.process.threads; }

namespace {

bool applies(const Rule& rule, std::uint32_t threads, bool onednn) {
  switch (rule.when) {
    case When::ManyThreads:
      return threads > 1;
    case When::OneThread:
      return threads == 1;
    case When::WithoutOneDnn:
      return !onednn;
    default:
      return true;
  }
}

std::int64_t threshold_of(const Rule& rule, std::uint32_t threads, std::int64_t target) {
  if (rule.threshold == kThreads) return threads;
  return rule.threshold == kEvery ? target : rule.threshold;
}

bool same_side(const Rule& rule, std::int64_t threshold, std::int64_t a, std::int64_t b) {
  return rule.threshold == kEvery ? a == b : (a >= threshold) == (b >= threshold);
}

class Check final {
 public:
  Check(const trace::TraceFile& file, const Take& target) : file_(file), target_(target) {
    threads_ = threads_of(file.takes.front());  // a prediction holds for the takes' number of threads
  }

  std::optional<Crossing> of(OpId op) const {
    const std::string_view name = base_name(target_.trace.ops[op.value].name);
    for (std::size_t row = 0; row < rules().size(); ++row) {
      const Rule& rule = rules()[row];
      if (!applies(rule, threads_, file_.onednn) || !listed(rule.ops, name)) continue;
      if (std::optional<Crossing> found = crossing(row, op)) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<Crossing> crossing(std::size_t row, OpId op) const {
    const Rule& rule = rules()[row];
    const Counts wanted = counts_of(target_.details[op.value], rule.quantity);
    std::vector<Counts> measured;
    for (const Take& take : file_.takes)
      if (op.value < take.details.size()) measured.push_back(counts_of(take.details[op.value], rule.quantity));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t threshold = threshold_of(rule, threads_, wanted[i]);
      std::int64_t least = INT64_MAX, most = INT64_MIN;
      bool same = true;
      for (const Counts& counts : measured) {
        if (i >= counts.size()) continue;  // this take's op has no such count to compare
        least = std::min(least, counts[i]);
        most = std::max(most, counts[i]);
        same = same && same_side(rule, threshold, counts[i], wanted[i]);
      }
      if (same) continue;
      return Crossing{
          target_.trace.ops[op.value].name, op, std::string(rule.says), threshold, least, most, wanted[i], row, i};
    }
    return std::nullopt;
  }

  const trace::TraceFile& file_;
  const Take& target_;
  std::uint32_t threads_;
};

}  // namespace

std::vector<Crossing> crossings(const trace::TraceFile& file, const Sequence&, const Take& target) {
  std::vector<Crossing> found;
  if (file.takes.empty()) return found;
  const Check check(file, target);
  for (std::size_t op = 0; op < target.details.size() && op < target.trace.ops.size(); ++op)
    if (std::optional<Crossing> crossing = check.of(OpId{op})) found.push_back(std::move(*crossing));
  return found;
}

bool has_threshold(const trace::Op& op) {
  return std::ranges::any_of(rules(),
                             [&](const Rule& rule) { return rule.ops != "*" && listed(rule.ops, base_name(op.name)); });
}

std::string_view base_name(std::string_view op) { return op.substr(0, op.find('.')); }

bool listed(std::string_view list, std::string_view op) {
  if (list == "*") return true;
  while (!list.empty()) {
    const std::size_t end = list.find(' ');
    if (list.substr(0, end) == op) return true;
    list = end == std::string_view::npos ? std::string_view{} : list.substr(end + 1);
  }
  return false;
}

}  // namespace ullage::predict
