// SPDX-License-Identifier: Apache-2.0
#include "expected_take.h"

#include <algorithm>
#include <utility>

namespace ullage::trace::test {
namespace {

constexpr EventId kNever{UINT64_MAX};

}  // namespace

void ExpectedTake::add_storage(StorageId id, Bytes bytes, OpId op, bool before) {
  auto& storages = take_.trace.storages;
  // Storages follow each other at multiples of 512 bytes, from 512 on.
  Address address{512};
  if (!storages.empty()) {
    address = storages.back().address + round_up(std::max(storages.back().bytes, 1_B), 512_B);
  }
  storages_[id.value] = storages.size();
  storages.push_back({bytes, address, {}, {}, op, before ? EventId{} : take_.trace.end(), kNever, kNever, before});
}

void ExpectedTake::before(StorageId id, Bytes bytes) {
  add_storage(id, bytes, kNoOp, true);
  take_.trace.live_before += bytes;
}

void ExpectedTake::allocated(StorageId id, Bytes bytes, OpId op_or_none, EventLog::Instant at) {
  add_storage(id, bytes, op_or_none == kNoOp ? kNoOp : OpId{ops_.at(op_or_none.value)}, false);
  event(event::Allocation{place(id)}, at);
}

void ExpectedTake::freed(StorageId id, EventLog::Instant at) {
  Storage& one = take_.trace.storages[place(id).value];
  one.died = one.tensor_died = take_.trace.end();
  event(event::Free{place(id)}, at);
}

void ExpectedTake::add_uses(OpDetail& detail, std::span<const UseView> uses) {
  for (const UseView& use : uses) {
    detail.uses.push_back({place(use.storage), use.how, use.dtype, {use.sizes.begin(), use.sizes.end()}});
  }
}

void ExpectedTake::op_begun(OpId id, const OpView& op, std::span<const UseView> uses, EventLog::Instant at) {
  ops_[id.value] = take_.details.size();
  begun_ns_[id.value] = at.nanoseconds;
  OpDetail detail{.thread = op.thread,
                  .backward = op.backward,
                  .grad_mode = op.grad_mode,
                  .sliced = op.sliced,
                  .outside = {},
                  .node = std::string(op.node),
                  .layer = std::string(op.layer),
                  .line = std::string(op.line),
                  .begin = take_.trace.end(),
                  .end = kNever,
                  .took = {},
                  .uses = {}};
  add_uses(detail, uses);
  take_.details.push_back(std::move(detail));
  take_.trace.ops.push_back({std::string(op.name), {}});
  event(event::OpBegin{OpId{ops_[id.value]}}, at);
}

void ExpectedTake::op_ended(OpId id, std::span<const UseView> uses, bool failed, EventLog::Instant at,
                            OutsideReads outside) {
  OpDetail& detail = take_.details[ops_.at(id.value)];
  detail.end = take_.trace.end();
  detail.failed = failed;
  detail.outside = outside;
  detail.took = Seconds{double(at.nanoseconds - begun_ns_[id.value]) / 1e9};
  add_uses(detail, uses);
  event(event::OpEnd{OpId{ops_[id.value]}}, at);
}

void ExpectedTake::has_role(StorageId id, Role role, std::string_view name) {
  take_.roles.push_back({take_.trace.end(), place(id), role, std::string(name)});
}

void ExpectedTake::border(ReportedBorder::What what, std::string_view phase, std::vector<Knob> knobs) {
  take_.borders.push_back({take_.trace.end(), what, std::string(phase), std::move(knobs)});
}

Take ExpectedTake::finish(const ProcessFigures& figures, Take::End why) {
  for (Storage& one : take_.trace.storages) {
    if (one.died == kNever) one.died = one.tensor_died = take_.trace.end();
  }
  for (OpDetail& one : take_.details) {
    if (one.end == kNever) one.end = take_.trace.end();
  }
  take_.trace.complete = take_.trace.live_before == Bytes{};
  take_.process = figures;
  take_.end = why;
  return take_;
}

}  // namespace ullage::trace::test
