// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/step_range.h"

#include "ullage/plan/model/site_key.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace ullage::plan {
namespace {

// Messages count steps from one.
Error bad(std::size_t which, const std::string& what) {
  return {Error::Kind::BadArgument, "step " + std::to_string(which + 1) + " " + what, ""};
}

struct Share {
  std::uint64_t backward = 0, followed = 0, all = 0;  // ops; followed: forward ops that autograd records
};

std::map<std::uint32_t, Share> shares(const trace::TakeIndex& index, std::size_t first, std::size_t last) {
  std::map<std::uint32_t, Share> of;
  for (std::size_t i = first; i < last; ++i) {
    const trace::OpDetail& one = index.take.details[i];
    Share& share = of[one.thread];
    ++share.all;
    share.backward += one.backward;
    share.followed += one.grad_mode && !one.backward;
  }
  return of;
}

// The thread for which `count` is largest; the lowest-numbered of several.
template <class Count>
std::uint32_t first_in(const std::map<std::uint32_t, Share>& shares, const Count& count) {
  const auto less = [&](const auto& a, const auto& b) { return count(a.second) < count(b.second); };
  return std::max_element(shares.begin(), shares.end(), less)->first;
}

}  // namespace

Result<StepRange> step_range(const trace::TakeIndex& index, const trace::Steps& steps, std::size_t which) {
  const trace::Take& take = index.take;
  if (which >= steps.whole()) {
    return bad(which, "is not in the recording: it has " + std::to_string(steps.whole()) + " whole steps");
  }
  StepRange range;
  range.begin = steps.begins[which];
  range.end = which + 1 < steps.begins.size() ? steps.begins[which + 1] : take.trace.end();
  for (const trace::Gap& gap : take.gaps) {
    if (range.begin <= gap.at && gap.at < range.end)
      return bad(which, "lacks events: of a long run only the first and the last part are recorded");
  }
  const auto place = [&](EventId at) {
    return std::size_t(std::ranges::lower_bound(take.details, at, {}, &trace::OpDetail::begin) - take.details.begin());
  };
  const std::size_t first = place(range.begin), last = place(range.end);
  if (first >= last) return bad(which, "runs no ops");
  const auto of = shares(index, first, last);
  const std::uint32_t most_backward = first_in(of, [](const Share& one) { return one.backward; });
  const bool trains = of.at(most_backward).backward > 0;
  range.thread = trains ? most_backward : first_in(of, [](const Share& one) { return one.all; });
  const std::uint32_t forward = first_in(of, [](const Share& one) { return one.followed; });
  if (trains && of.at(range.thread).followed == 0 && of.at(forward).followed > 0) {
    return bad(which, "runs its forward pass on thread " + std::to_string(forward) +
                          " and its backward pass on thread " + std::to_string(range.thread));
  }
  for (std::size_t i = first; i < last; ++i) {
    if (take.details[i].thread != range.thread || index.root[i] != OpId{i}) continue;
    if (take.details[i].end >= range.end) return bad(which, "ends within its op " + take.trace.ops[i].name);
    range.ops.push_back(OpId{i});
  }
  return range;
}

std::uint64_t key_of(const trace::TakeIndex& index, OpId op) {
  SiteKey key(index.take.trace.ops[op.value].name);
  for (const trace::TensorUse& use : index.detail(op).uses) {
    if (use.how != trace::TensorUse::How::Output) key.add(use.dtype, use.sizes);
  }
  return key.value();
}

}  // namespace ullage::plan
