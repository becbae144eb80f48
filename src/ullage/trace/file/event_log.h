// SPDX-License-Identifier: Apache-2.0
#pragma once

// The recorder's memory: events as they come, packed into a few bytes each, in chunks that are already what the file
// holds. A long run keeps its first chunks and its newest; what falls out between becomes a gap. One thread at a time.
// What is said of storages and ops that the log does not know, or that are gone, is left out: a recorder may be started
// when much lives already. Without a take that is open nothing is kept but who lives.

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

// A tensor as the recorder passes it: nothing is copied before it is packed.
struct UseView {
  StorageId storage;
  TensorUse::How how = TensorUse::How::Read;
  std::uint8_t dtype = 0;
  std::span<const std::int64_t> sizes;
};

struct OpView {
  std::string_view name;   // lives for ever, as do the next two: they are known again by their addresses
  std::string_view node;   // may be empty
  std::string_view layer;  // may be empty
  std::string_view line;   // may be empty; lives for ever too
  std::uint32_t thread = 0;
  bool backward = false;
  bool grad_mode = false;
  bool sliced = false;
};

class EventLog final {
 public:
  struct Limits {
    Bytes first = 32_MiB;   // kept from the beginning of the take
    Bytes newest = 96_MiB;  // kept before its end
  };

  EventLog();
  explicit EventLog(Limits limits);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  EventLog& operator=(EventLog&&) noexcept;  // what was logged before is forgotten

  // Nanoseconds since the take began; never goes back.
  struct Instant {
    std::uint64_t nanoseconds = 0;
  };

  // Ends the take before, if there was one, and begins another. Storages of the one before that are still live are
  // this one's storages from before; so are ids of theirs still good.
  void begin_take(std::span<const Knob> knobs);
  void end_take(const ProcessFigures& figures, Take::End why);

  // `bytes` is above zero. It belongs to the innermost op that is open on that thread.
  StorageId allocated(Bytes bytes, std::uint32_t thread, Instant at);
  void freed(StorageId storage, std::uint32_t thread, Instant at);
  OpId op_begun(const OpView& op, std::span<const UseView> uses, Instant at);
  // Ops end in any order; those of one thread nest. `outputs` may be of storages known as inputs.
  void op_ended(OpId op, std::span<const UseView> outputs, bool failed, Instant at);
  void saved(StorageId storage, SavedKind kind, Instant at);
  void released(StorageId storage, Instant at);
  void out_of_memory(Bytes requested, std::uint32_t thread, Instant at);
  // Cheap to call again with the same. The name (see RoleSeen) may follow; it is copied, as are those below.
  void has_role(StorageId storage, Role role, std::string_view name);
  void border(BorderTold::What what, std::string_view phase = {}, std::span<const Knob> knobs = {});
  void charged(std::int64_t bytes);

  std::uint64_t events() const;  // of the take, lost ones too
  Bytes held() const;            // memory that the log takes

  // The whole file: `file`'s own fields (its takes are not looked at) and all takes of the log. The take that is open
  // is written as if it ended now with `figures`; the log goes on.
  void write(const TraceFile& file, const ProcessFigures& figures, Take::End why, std::ostream& out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ullage::trace
