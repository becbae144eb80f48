// SPDX-License-Identifier: Apache-2.0
#include "random_program.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ullage::trace::test {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"aten::mm", "aten::convolution_backward", "aten::add_",
                                                    "aten::_foreach_addcdiv_"};
constexpr std::array<std::string_view, 3> kNodes = {"", "ConvolutionBackward0", "AddmmBackward0"};
constexpr std::array<std::string_view, 3> kLayers = {"", "netG.main.0", "netD.main.11"};
constexpr std::array<std::string_view, 3> kLines = {"", "train.py:57", "model/net.py:8"};
constexpr std::array<std::array<std::int64_t, 5>, 3> kSizes = {
    {{2, 3, 64, 64, 1}, {128, 0, 1, 9, 9}, {1 << 20, 7, 7, 1, 1}}};

}  // namespace

void RandomProgram::begin_take(std::vector<Knob> knobs) {
  log_.begin_take(knobs);
  nanoseconds_ = 0;
  open_.clear();
  expected_.emplace(std::move(knobs));
  std::ranges::sort(live_, {}, &Live::id);
  for (const Live& one : live_) expected_->before(one.id, Bytes{one.bytes});
  for (const Live& one : live_) {
    if (one.parameter) expected_->has_role(one.id, Role::Parameter, "w");
  }
}

EventLog::Instant RandomProgram::now() { return {nanoseconds_ += below(5) == 0 ? below(3'000'000) : below(900)}; }

std::size_t RandomProgram::allocate(std::uint32_t thread, Bytes bytes) {
  const auto at = now();
  const StorageId id = log_.allocated(bytes, thread, at);
  const auto op = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& one) { return one.thread == thread; });
  if (expected_) expected_->allocated(id, bytes, op == open_.rend() ? kNoOp : op->id, at);
  live_.push_back({id, bytes.count, false});
  live_bytes_ += bytes.count;
  return live_.size() - 1;
}

void RandomProgram::free(std::size_t index) {
  const auto at = now();
  log_.freed(live_[index].id, 0, at);
  if (expected_) expected_->freed(live_[index].id, at);
  live_bytes_ -= live_[index].bytes;
  live_.erase(live_.begin() + std::ptrdiff_t(index));
}

std::vector<UseView> RandomProgram::some_uses(TensorUse::How how) {
  std::vector<UseView> uses;
  for (std::uint64_t count = live_.empty() ? 0 : below(4); count > 0; --count) {
    const auto& sizes = kSizes[below(kSizes.size())];
    uses.push_back({live_[below(live_.size())].id, how, std::uint8_t(below(8)), std::span(sizes).first(below(6))});
  }
  return uses;
}

void RandomProgram::begin_op() {
  const OpView op{kNames[below(kNames.size())],
                  kNodes[below(kNodes.size())],
                  kLayers[below(kLayers.size())],
                  kLines[below(kLines.size())],
                  std::uint32_t(below(2)),
                  below(2) == 1,
                  below(2) == 1,
                  below(9) == 0};
  const auto uses = some_uses(below(2) == 0 ? TensorUse::How::Read : TensorUse::How::Written);
  const auto at = now();
  const OpId id = log_.op_begun(op, uses, at);
  if (expected_) expected_->op_begun(id, op, uses, at);
  open_.push_back({id, op.thread});
}

void RandomProgram::end_op(std::size_t index) {
  const auto uses = some_uses(TensorUse::How::Output);
  const bool failed = below(20) == 0;
  const auto at = now();
  const OutsideReads outside{.mapped = below(4) == 0, .other = below(4) == 0};
  log_.op_ended(open_[index].id, uses, failed, at, outside);
  if (expected_) expected_->op_ended(open_[index].id, uses, failed, at, outside);
  open_.erase(open_.begin() + std::ptrdiff_t(index));
}

void RandomProgram::tell() {
  switch (below(4)) {
    case 0: {
      const std::vector<Knob> knobs(below(3), {"batch", std::int64_t(below(9)) - 4});
      log_.border(ReportedBorder::What::PhaseBegin, "sampling", knobs);
      if (expected_) expected_->border(ReportedBorder::What::PhaseBegin, "sampling", knobs);
      return;
    }
    case 1:
      log_.border(ReportedBorder::What::StepEnd);
      if (expected_) expected_->border(ReportedBorder::What::StepEnd, "", {});
      return;
    case 2: {
      const std::int64_t bytes = std::int64_t(below(2000)) - 1000;
      log_.charged(bytes);
      if (expected_) expected_->charged(bytes);
      log_.charged(-bytes);  // so that no charge is carried into the next take
      if (expected_) expected_->charged(-bytes);
      return;
    }
    default:
      if (live_.empty() || live_.back().parameter) return;
      live_.back().parameter = true;
      log_.has_role(live_.back().id, Role::Parameter, "w");
      if (expected_) expected_->has_role(live_.back().id, Role::Parameter, "w");
  }
}

void RandomProgram::act() {
  const std::uint64_t what = below(100);
  if (what < 25) {
    allocate(std::uint32_t(below(3)), Bytes{1 + below(1ull << (1 + below(32)))});
  } else if (what < 48) {
    if (!live_.empty()) free(below(live_.size()));
  } else if (what < 70) {
    begin_op();
  } else if (what < 92) {
    if (!open_.empty()) end_op(below(open_.size()));
  } else if (what < 97 && !live_.empty()) {
    const StorageId id = live_[below(live_.size())].id;
    const auto at = now();
    const auto kind = static_cast<SavedKind>(below(3));
    log_.saved(id, kind, at);
    if (expected_) expected_->saved(id, kind, at);
    log_.released(id, at);
    if (expected_) expected_->released(id, at);
  } else {
    tell();
  }
}

void RandomProgram::run(std::uint64_t actions) {
  for (std::uint64_t i = 0; i < actions; ++i) act();
}

void RandomProgram::train_steps(std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::size_t first = live_.size();
    for (std::uint64_t i = 0; i < 50; ++i) {
      begin_op();
      allocate(open_.back().thread, Bytes{1024 * (i + 1)});
      end_op(open_.size() - 1);
    }
    while (live_.size() > first) free(live_.size() - 1);
    log_.border(ReportedBorder::What::StepEnd);
    if (expected_) expected_->border(ReportedBorder::What::StepEnd, "", {});
  }
}

Take RandomProgram::finish(const ProcessFigures& figures, Take::End why) {
  log_.end_take(figures, why);
  Take take = expected_->finish(figures, why);
  expected_.reset();
  return take;
}

}  // namespace ullage::trace::test
