// SPDX-License-Identifier: Apache-2.0
#pragma once

// The recorder's memory: events as they come, packed into a few bytes each, in the same chunks that the file holds. A
// long run keeps its first and its newest chunks; what falls out in between becomes a gap. Not thread-safe. A recorder
// can start when many storages are live already. So a call about an unknown storage or op is ignored, as is one
// about a storage that was freed or an op that has ended. While no take is open, the log only keeps which storages are
// live, their roles, and what is charged.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::trace {

// A tensor as the recorder passes it. Its sizes are only copied when it is packed.
struct UseView {
  StorageId storage;
  TensorUse::How how = TensorUse::How::Read;
  std::uint8_t dtype = 0;
  std::span<const std::int64_t> sizes;
};

struct OpView {
  std::string_view name;   // these four texts must live for ever: they are recognized by their addresses
  std::string_view node;   // may be empty
  std::string_view layer;  // may be empty
  std::string_view line;   // may be empty
  std::uint32_t thread = 0;
  bool backward = false;
  bool grad_mode = false;
  bool sliced = false;
};

class EventLog final {
 public:
  struct Limits {
    Bytes first = 32_MiB;   // of chunks kept from the beginning of the take
    Bytes newest = 96_MiB;  // of chunks kept from its end
  };

  EventLog();
  explicit EventLog(Limits limits);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  EventLog& operator=(EventLog&&) noexcept;  // forgets what this log had before

  // The time since the take began. It must not go back.
  struct Instant {
    std::uint64_t nanoseconds = 0;
  };

  // Begins a take, and ends the one before if it is still open. Storages that are live now become storages from before
  // the new take, and keep their ids.
  void begin_take(std::span<const Knob> knobs);
  void end_take(const ProcessFigures& figures, Take::End why);

  // `bytes` is above zero. The innermost op that is open on `thread` counts as the one that allocates.
  StorageId allocated(Bytes bytes, std::uint32_t thread, Instant at);
  void freed(StorageId storage, std::uint32_t thread, Instant at);
  OpId op_begun(const OpView& op, std::span<const UseView> uses, Instant at);
  // Ops can end in any order, but those of one thread nest. `outputs` may include the storages of inputs.
  void op_ended(OpId op, std::span<const UseView> outputs, bool failed, Instant at, OutsideReads outside = {});
  void saved(StorageId storage, SavedKind kind, Instant at);
  void released(StorageId storage, Instant at);
  void out_of_memory(Bytes requested, std::uint32_t thread, Instant at);
  // Cheap if the log has the same role and name already. The name (see RoleSeen) can be passed by a later call. Names
  // are copied here and in border().
  void has_role(StorageId storage, Role role, std::string_view name);
  void border(ReportedBorder::What what, std::string_view phase = {}, std::span<const Knob> knobs = {});
  void charged(std::int64_t bytes);

  std::uint64_t events() const;  // in the newest take, lost ones included
  Bytes held() const;            // memory that the log uses

  // Writes a whole file: the fields of `file` without its takes, and all takes of the log. An open take is written as
  // if it ended now with `figures` and `why`, and stays open.
  void write(const TraceFile& file, const ProcessFigures& figures, Take::End why, std::ostream& out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ullage::trace
