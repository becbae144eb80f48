// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include "ullage/base/check.h"

#include <utility>

namespace ullage::predict {

Program::Program(std::vector<Knob> knobs) {
  take_.knobs = std::move(knobs);
  take_.end = trace::Take::End::StepBorder;
  take_.process = {600_MiB, 130_MiB, 0_B, 0_B, 2, {}};
}

std::int64_t Program::knob(const std::string& name) const {
  for (const Knob& one : take_.knobs) {
    if (one.name == name) return one.value;
  }
  ULLAGE_CHECK(false, "no such knob");
  return 0;
}

StorageId Program::from_before(std::uint64_t bytes) {
  trace::Storage storage;
  storage.bytes = Bytes{bytes};
  storage.op = trace::kNoOp;
  storage.from_before = true;
  storage.died = EventId{UINT64_MAX};
  take_.trace.storages.push_back(storage);
  take_.trace.live_before += Bytes{bytes};
  return StorageId{take_.trace.storages.size() - 1};
}

StorageId Program::born(std::uint64_t bytes, OpId op) {
  trace::Storage storage;
  storage.bytes = Bytes{bytes};
  storage.op = op;
  storage.born = next();
  storage.died = EventId{UINT64_MAX};
  take_.trace.storages.push_back(storage);
  const StorageId id{take_.trace.storages.size() - 1};
  add(trace::event::Allocation{id});
  return id;
}

StorageId Program::make(std::uint64_t bytes) { return born(bytes, running_.empty() ? trace::kNoOp : running_.back()); }
StorageId Program::make_on_worker(std::uint64_t bytes) { return born(bytes, trace::kNoOp); }

void Program::free(StorageId id) {
  take_.trace.storages[id.value].died = take_.trace.storages[id.value].tensor_died = next();
  add(trace::event::Free{id});
}

OpId Program::begin(const std::string& name, const std::vector<trace::TensorUse>& inputs, std::uint32_t thread) {
  const OpId op{take_.trace.ops.size()};
  take_.trace.ops.push_back({name, {}});
  trace::OpDetail detail;
  detail.thread = thread;
  detail.begin = next();
  detail.end = EventId{UINT64_MAX};
  detail.uses = inputs;
  take_.details.push_back(detail);
  add(trace::event::OpBegin{op});
  running_.push_back(op);
  return op;
}

void Program::end(OpId op, const std::vector<trace::TensorUse>& outputs) {
  trace::OpDetail& detail = take_.details[op.value];
  detail.end = next();
  detail.uses.insert(detail.uses.end(), outputs.begin(), outputs.end());
  add(trace::event::OpEnd{op});
  std::erase(running_, op);
}

StorageId Program::op(const std::string& name, std::uint64_t bytes, const std::vector<trace::TensorUse>& inputs) {
  const OpId one = begin(name, inputs);
  const StorageId id = make(bytes);
  end(one, {gives(id, {std::int64_t(bytes / 4)})});
  return id;
}

void Program::save(StorageId id) { add(trace::event::Save{id}); }
void Program::unsave(StorageId id) { add(trace::event::Unsave{id}); }
void Program::role(StorageId id, trace::Role role, const std::string& name) {
  take_.roles.push_back({next(), id, role, name});
}
void Program::step_end() { take_.borders.push_back({next(), trace::ReportedBorder::What::StepEnd, {}, {}}); }
void Program::phase(const std::string& name, const std::vector<Knob>& knobs) {
  take_.borders.push_back({next(), trace::ReportedBorder::What::PhaseBegin, name, knobs});
}
void Program::phase_end() { take_.borders.push_back({next(), trace::ReportedBorder::What::PhaseEnd, {}, {}}); }
void Program::charge(std::int64_t bytes) { take_.charges.push_back({next(), bytes}); }
void Program::lose(std::uint64_t events) {
  take_.gaps.push_back({next(), events});
  add(trace::event::Mark{});
}
void Program::refuse(std::uint64_t bytes) {
  add(trace::event::OutOfMemory{Bytes{bytes}, {}});
  take_.end = trace::Take::End::OutOfMemory;
}

trace::Take Program::take() {
  const EventId end = take_.trace.end();
  for (trace::Storage& storage : take_.trace.storages) {
    if (storage.died > end) storage.died = storage.tensor_died = end;
  }
  for (trace::OpDetail& detail : take_.details) {
    if (detail.end > end) detail.end = end;
  }
  return take_;
}

trace::TensorUse reads(StorageId id, std::vector<std::int64_t> sizes) {
  return {id, trace::TensorUse::How::Read, 6, std::move(sizes)};
}
trace::TensorUse gives(StorageId id, std::vector<std::int64_t> sizes) {
  return {id, trace::TensorUse::How::Output, 6, std::move(sizes)};
}

trace::TraceFile takes(const std::vector<std::vector<Knob>>& knobs, const Does& run) {
  trace::TraceFile file;
  for (const std::vector<Knob>& one : knobs) {
    Program program(one);
    run(program);
    file.takes.push_back(program.take());
  }
  return file;
}

trace::TraceFile takes_by_batch(const Does& run, std::vector<std::int64_t> batches) {
  std::vector<std::vector<Knob>> knobs;
  for (const std::int64_t batch : batches) knobs.push_back({{"batch", batch}});
  return takes(knobs, run);
}

}  // namespace ullage::predict
