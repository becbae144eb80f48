// SPDX-License-Identifier: Apache-2.0
#include "take_builder.h"

namespace ullage::trace::test {

StorageId TakeBuilder::from_before(Bytes bytes) {
  const StorageId id{take_.trace.storages.size()};
  Storage one{bytes, {}, {}, {}, kNoOp, EventId{}, EventId{UINT64_MAX}, EventId{UINT64_MAX}, true};
  take_.trace.storages.push_back(one);
  take_.trace.live_before += bytes;
  return id;
}

StorageId TakeBuilder::allocate(Bytes bytes) {
  const StorageId id{take_.trace.storages.size()};
  const OpId op = open_.empty() ? kNoOp : open_.back();
  take_.trace.storages.push_back(
      {bytes, {}, {}, {}, op, take_.trace.end(), EventId{UINT64_MAX}, EventId{UINT64_MAX}, false});
  add(event::Allocation{id});
  return id;
}

void TakeBuilder::free(StorageId storage) {
  Storage& one = take_.trace.storages.at(storage.value);
  one.tensor_died = one.died = take_.trace.end();
  add(event::Free{storage});
}

TensorUse TakeBuilder::use(StorageId storage, TensorUse::How how) const {
  const auto known = sizes_.find(storage.value);
  const auto count = std::int64_t(take_.trace.storages.at(storage.value).bytes.count / 4);
  return {storage, how, 6, known == sizes_.end() ? std::vector{count} : known->second};
}

OpId TakeBuilder::open(const OpSpec& spec) {
  const OpId id{take_.trace.ops.size()};
  take_.trace.ops.push_back({spec.name, {}});
  OpDetail detail;
  detail.backward = mode_ == Mode::Backward;
  detail.grad_mode = mode_ == Mode::Grad;
  detail.node = spec.node;
  detail.layer = spec.layer;
  detail.line = spec.line;
  detail.begin = take_.trace.end();
  detail.end = EventId{UINT64_MAX};
  for (const StorageId one : spec.reads) detail.uses.push_back(use(one, TensorUse::How::Read));
  for (const StorageId one : spec.writes) detail.uses.push_back(use(one, TensorUse::How::Written));
  take_.details.push_back(detail);
  add(event::OpBegin{id});
  open_.push_back(id);
  return id;
}

void TakeBuilder::close(OpId op) {
  std::erase(open_, op);
  take_.details.at(op.value).end = take_.trace.end();
  add(event::OpEnd{op});
}

std::vector<StorageId> TakeBuilder::op(const OpSpec& spec) {
  const OpId id = open(spec);
  std::vector<StorageId> scratch, made;
  for (const Bytes bytes : spec.scratch) scratch.push_back(allocate(bytes));
  for (const Bytes bytes : spec.makes) made.push_back(allocate(bytes));
  for (const StorageId one : scratch) free(one);
  for (const auto& [storage, kind] : spec.saves) save(storage, kind);
  for (const StorageId one : made) take_.details.at(id.value).uses.push_back(use(one, TensorUse::How::Output));
  close(id);
  return made;
}

void TakeBuilder::role(StorageId storage, Role role, std::string name) {
  take_.roles.push_back({take_.trace.end(), storage, role, std::move(name)});
}

void TakeBuilder::sizes(StorageId storage, std::vector<std::int64_t> sizes) {
  for (OpDetail& op : take_.details) {
    for (TensorUse& one : op.uses) {
      if (one.storage == storage) one.sizes = sizes;
    }
  }
  sizes_[storage.value] = std::move(sizes);
}

void TakeBuilder::step_told() { take_.borders.push_back({take_.trace.end(), ReportedBorder::What::StepEnd, {}, {}}); }

void TakeBuilder::gap(std::uint64_t events) {
  take_.gaps.push_back({take_.trace.end(), events});
  add(event::Mark{});
}

Take TakeBuilder::take(Take::End end) const {
  Take take = take_;
  take.end = end;
  for (Storage& one : take.trace.storages) {
    one.tensor_died = std::min(one.tensor_died, take.trace.end());
    one.died = std::min(one.died, take.trace.end());
  }
  for (OpDetail& one : take.details) one.end = std::min(one.end, take.trace.end());
  return take;
}

}  // namespace ullage::trace::test
