// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Take that an EventLog should return, built from the same calls without any packing.

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ullage::trace::test {

class ExpectedTake final {
 public:
  explicit ExpectedTake(std::vector<Knob> knobs) { take_.knobs = std::move(knobs); }

  void before(StorageId id, Bytes bytes);
  void allocated(StorageId id, Bytes bytes, OpId op_or_none, EventLog::Instant at);
  void freed(StorageId id, EventLog::Instant at);
  void op_begun(OpId id, const OpView& op, std::span<const UseView> uses, EventLog::Instant at);
  void op_ended(OpId id, std::span<const UseView> uses, bool failed, EventLog::Instant at, OutsideReads outside = {});
  void event(auto what, EventLog::Instant at) {
    take_.trace.events.push_back({what, Microseconds{std::int64_t(at.nanoseconds / 1000)}, {}});
  }
  void saved(StorageId id, SavedKind kind, EventLog::Instant at) { event(event::Save{place(id), kind}, at); }
  void released(StorageId id, EventLog::Instant at) { event(event::Unsave{place(id)}, at); }
  void has_role(StorageId id, Role role, std::string_view name);
  void border(ReportedBorder::What what, std::string_view phase, std::vector<Knob> knobs);
  void charged(std::int64_t bytes) { take_.charges.push_back({take_.trace.end(), bytes}); }
  Take finish(const ProcessFigures& figures, Take::End why);

 private:
  StorageId place(StorageId id) const { return StorageId{storages_.at(id.value)}; }
  void add_storage(StorageId id, Bytes bytes, OpId op, bool before);
  void add_uses(OpDetail& detail, std::span<const UseView> uses);

  Take take_;
  std::map<std::uint64_t, std::uint64_t> storages_, ops_;
  std::map<std::uint64_t, std::uint64_t> begun_ns_;
};

}  // namespace ullage::trace::test
