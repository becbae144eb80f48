// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/take_writer.h"

#include "ullage/base/check.h"
#include "ullage/trace/file/file_json.h"

#include <algorithm>
#include <cmath>

namespace ullage::trace {
namespace {

constexpr EventLog::Limits kAll{Bytes{UINT64_MAX}, Bytes{UINT64_MAX}};

void append_position(PackedBytes& out, const Position& at) {
  for (const std::uint64_t value : {at.next_storage, at.next_op, at.micros, at.thread}) append_packed(out, value);
}

std::uint64_t nanoseconds(Seconds time) {
  return static_cast<std::uint64_t>(std::llround(std::clamp(time.count, 0.0, 1e9) * 1e9));
}

bool has_end(const Take& take, const OpDetail& detail) {
  return detail.end < take.trace.end() &&
         std::holds_alternative<event::OpEnd>(take.trace.events[detail.end.value].what);
}

}  // namespace

void write_before(PartWriter& parts, std::span<const GapPart::Born> before) {
  PackedBytes out;
  append_packed(out, before.size());
  std::uint64_t next = 0;
  for (const GapPart::Born& one : before) {
    append_packed(out, one.storage - next);
    append_packed(out, one.bytes);
    next = one.storage + 1;
  }
  parts.write(part::kBefore, out);
}

void write_chunks(PartWriter& parts, const PackedTake& take) {
  PackedBytes out;
  const auto write = [&](const Chunk& chunk) {
    out.clear();
    append_position(out, chunk.begin);
    append_packed(out, chunk.events);
    const auto used = chunk.used();
    out.insert(out.end(), used.begin(), used.end());
    parts.write(part::kChunk, out);
  };
  std::ranges::for_each(take.first(), write);
  if (take.lost()) {
    out.clear();
    append_gap(out, take.lost()->begin(), take.lost()->part());
    parts.write(part::kGap, out);
  }
  std::ranges::for_each(take.newest(), write);
}

TakeWriter::TakeWriter(const Take& take, Texts& texts, Shapes& shapes, PartWriter* parts)
    : take_(take), texts_(texts), shapes_(shapes), parts_(parts) {
  ULLAGE_CHECK(take.details.size() == take.trace.ops.size(), "a take has a detail for each op");
}

void TakeWriter::write() {
  write_head();
  PackedTake packed(now_, shapes_, kAll);
  PackedTake* current = &packed;
  std::optional<PackedTake> behind_gap;
  std::uint64_t events = 0;
  const auto flush = [&] {
    if (parts_ != nullptr) write_chunks(*parts_, *current);
    events += current->events();
  };
  for (std::uint64_t i = 0; i < take_.trace.events.size(); ++i) {
    if (gaps_ < take_.gaps.size() && take_.gaps[gaps_].at == EventId{i}) {
      flush();
      events += take_.gaps[gaps_].events;
      write_gap(EventId{i});
      current = &behind_gap.emplace(now_, shapes_, kAll);
      continue;
    }
    write_records(EventId{i}, *current);
    write_event(i, *current);
  }
  write_records(take_.trace.end(), *current);
  flush();
  ULLAGE_CHECK(gaps_ == take_.gaps.size() && roles_ == take_.roles.size() && borders_ == take_.borders.size() &&
                   charges_ == take_.charges.size(),
               "gaps, roles, borders and charges of a take stand in the order of their events");
  if (parts_ != nullptr) parts_->write(part::kTakeEnd, take_end_json({take_.process, take_.end, events}));
}

void TakeWriter::write_head() {
  std::vector<GapPart::Born> before;
  for (const Storage& one : take_.trace.storages) {
    if (!one.from_before) break;
    before.push_back({before.size(), one.bytes.count});
  }
  now_ = {before.size(), 0, 0, 0};
  if (parts_ == nullptr) return;
  parts_->write(part::kTake, take_json({take_.knobs, before.size(), 0}));
  write_before(*parts_, before);
}

std::uint64_t TakeWriter::micros_of(std::uint64_t event) const {
  const auto& at = take_.trace.events[event].at;
  return at && at->count > 0 ? static_cast<std::uint64_t>(at->count) : 0;
}

void TakeWriter::write_event(std::uint64_t index, PackedTake& packed) {
  const auto& what = take_.trace.events[index].what;
  const std::uint64_t micros = micros_of(index);
  if (const auto* allocation = std::get_if<event::Allocation>(&what)) {
    ULLAGE_CHECK(allocation->storage.value == now_.next_storage, "storages are numbered by their births");
    const Storage& storage = take_.trace.storages.at(allocation->storage.value);
    packed.allocation(storage.bytes, storage.op == kNoOp ? std::nullopt : std::optional(storage.op.value), micros);
  } else if (const auto* free = std::get_if<event::Free>(&what)) {
    packed.free(free->storage.value, micros);
  } else if (const auto* begin = std::get_if<event::OpBegin>(&what)) {
    write_op_begin(begin->op, packed, micros);
  } else if (const auto* end = std::get_if<event::OpEnd>(&what)) {
    write_op_end(end->op, packed, micros);
  } else if (const auto* save = std::get_if<event::Save>(&what)) {
    packed.save(save->storage.value, save->kind, micros);
  } else if (const auto* unsave = std::get_if<event::Unsave>(&what)) {
    packed.unsave(unsave->storage.value, micros);
  } else if (const auto* refused = std::get_if<event::OutOfMemory>(&what)) {
    packed.out_of_memory(refused->requested, micros);
  } else {
    ULLAGE_CHECK(std::holds_alternative<event::Mark>(what), "a take has no such events");
    packed.mark(micros);
  }
}

// Returns the uses that are packed with the begin of an op, or with its end. From the first output, or the first
// storage that is born while the op runs, uses go with the end. If the op has no end, all go with the begin. To be
// called for the begin of every op, in order, and later for its end.
std::span<const UseView> TakeWriter::uses_of(OpId op, bool at_end) {
  const OpDetail& detail = take_.details[op.value];
  if (!at_end) {
    const auto later = std::ranges::find_if(detail.uses, [&](const TensorUse& use) {
      return use.how == TensorUse::How::Output || use.storage.value >= now_.next_storage;
    });
    uses_at_begin_.push_back(has_end(take_, detail) ? std::size_t(later - detail.uses.begin()) : detail.uses.size());
  }
  const std::span<const TensorUse> all(detail.uses);
  const std::size_t split = uses_at_begin_[op.value];
  uses_.clear();
  for (const TensorUse& use : at_end ? all.subspan(split) : all.first(split)) {
    ULLAGE_CHECK(use.storage.value < now_.next_storage, "an op uses a storage that was not allocated yet");
    uses_.push_back({use.storage, use.how, use.dtype, use.sizes});
  }
  return uses_;
}

void TakeWriter::write_op_begin(OpId op, PackedTake& packed, std::uint64_t micros) {
  ULLAGE_CHECK(op.value == now_.next_op && op.value < take_.details.size(), "ops are numbered by their begins");
  const OpDetail& detail = take_.details[op.value];
  const OpView view{{}, {}, {}, {}, detail.thread, detail.backward, detail.grad_mode, detail.sliced};
  const PackedTake::OpTexts texts{texts_.of(take_.trace.ops[op.value].name), texts_.of(detail.node),
                                  texts_.of(detail.layer), texts_.of(detail.line)};
  packed.op_begin(view, texts, uses_of(op, false), micros);
}

void TakeWriter::write_op_end(OpId op, PackedTake& packed, std::uint64_t micros) {
  ULLAGE_CHECK(op.value < now_.next_op, "an op ends that did not begin");
  const OpDetail& detail = take_.details[op.value];
  packed.op_end(op.value, nanoseconds(detail.took), detail.failed, detail.outside, uses_of(op, true), micros);
}

void TakeWriter::write_border(const ReportedBorder& border, PackedTake& packed) {
  std::vector<PackedKnob> knobs;
  for (const Knob& knob : border.knobs) knobs.push_back({texts_.of(knob.name), knob.value});
  packed.border(border.what, texts_.of(border.phase), knobs);
}

// Writes the roles, borders and charges that lie before the event.
void TakeWriter::write_records(EventId before, PackedTake& packed) {
  const auto due = [&](const auto& list, std::size_t next) { return next < list.size() && list[next].at == before; };
  for (; due(take_.roles, roles_); ++roles_) {
    const RoleSeen& one = take_.roles[roles_];
    ULLAGE_CHECK(one.storage.value < now_.next_storage, "a role of a storage that was not allocated yet");
    packed.role(one.storage.value, one.role, texts_.of(one.name));
  }
  for (; due(take_.borders, borders_); ++borders_) write_border(take_.borders[borders_], packed);
  for (; due(take_.charges, charges_); ++charges_) packed.charge(take_.charges[charges_].bytes);
}

void TakeWriter::write_gap(EventId at) {
  ULLAGE_CHECK(std::holds_alternative<event::Mark>(take_.trace.events[at.value].what), "a gap stands at a mark");
  const Position begin = now_;
  GapPart gap;
  gap.events = take_.gaps[gaps_++].events;
  for (std::uint64_t i = 0; i < take_.trace.storages.size(); ++i) {
    const Storage& one = take_.trace.storages[i];
    if (!one.from_before && one.born == at) {
      ULLAGE_CHECK(i == now_.next_storage, "storages are numbered by their births");
      gap.born.push_back({now_.next_storage++, one.bytes.count});
    }
    if (one.died == at) gap.died.push_back(i);
  }
  for (std::uint64_t op = 0; op < now_.next_op; ++op) {
    const OpDetail& detail = take_.details[op];
    if (detail.end == at) gap.ended.push_back({op, nanoseconds(detail.took)});
  }
  now_.micros = std::max(now_.micros, micros_of(at.value));
  gap.end = now_;
  PackedTake records(now_, shapes_, kAll);
  write_records(at, records);
  for (const Chunk& chunk : records.first()) {
    const auto used = chunk.used();
    gap.records.insert(gap.records.end(), used.begin(), used.end());
  }
  if (parts_ == nullptr) return;
  PackedBytes out;
  append_gap(out, begin, gap);
  parts_->write(part::kGap, out);
}

}  // namespace ullage::trace
