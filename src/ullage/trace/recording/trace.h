// SPDX-License-Identifier: Apache-2.0
#pragma once

// The common model of what a program did with one device's memory: storages, ops and events in order. Snapshots,
// profiler traces and Ullage's own takes all become a Trace, and every analysis works on it.
//
//   event        0     1     2     3     4     5          level(e) is the level after event e
//   storage a  [ born ........ died )                     a storage counts in level(e) for e in [born, died)
//   storage b  before ) died                              from before the first event: born = 0, from_before is set
//   storage c              [ born ............. end )     alive at the end: died = events.size()

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/stacks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ullage::trace {

struct Storage {
  Bytes bytes;  // requested
  Address address;
  StreamId stream;
  StackId stack;  // where it was allocated
  OpId op;        // that allocated it; kNoOp if none did or ops are not recorded
  EventId born;
  EventId tensor_died;  // when its free was requested; events.size() if never
  EventId died;         // when its bytes were free again; events.size() if never
  bool from_before = false;
};

inline constexpr OpId kNoOp{UINT64_MAX};

// The kind of tensor that autograd saved.
enum class SavedKind : std::uint8_t {
  Parameter,   // a leaf that requires grad, or a view of one (a linear layer's transposed weight)
  Constant,    // a leaf that does not require grad: buffers, data, masks, indices
  Activation,  // the result of an op that autograd recorded
};

struct Op {
  std::string name;  // "aten::mm"
  StackId stack;
};

namespace event {
struct Allocation {
  StorageId storage;
};
struct FreeRequest {
  StorageId storage;
};
struct Free {
  StorageId storage;
};
struct ReservedMore {  // the pool took bytes from the device
  Address address;
  Bytes bytes;
};
struct ReservedLess {
  Address address;
  Bytes bytes;
};
struct OutOfMemory {
  Bytes requested;
  Bytes device_free;
  bool device_free_known = true;  // false for profiler traces and takes
};
struct OpBegin {
  OpId op;
};
struct OpEnd {
  OpId op;
};
struct Save {  // autograd saves it for the backward pass
  StorageId storage;
  SavedKind kind = SavedKind::Activation;
};
struct Unsave {  // autograd releases it
  StorageId storage;
};
struct Mark {};  // changes no level: a snapshot was taken, a free of nothing that is live, lost events (Take::gaps)
}  // namespace event

struct Event {
  std::variant<event::Allocation, event::FreeRequest, event::Free, event::ReservedMore, event::ReservedLess,
               event::OutOfMemory, event::OpBegin, event::OpEnd, event::Save, event::Unsave, event::Mark>
      what;
  std::optional<Microseconds> at;
  StackId stack;
};

struct Trace {
  unsigned device = 0;
  std::vector<Storage> storages;  // index: StorageId
  std::vector<Op> ops;            // index: OpId
  std::vector<Event> events;      // index: EventId; for a snapshot one for each recorded event, in the same order
  std::vector<Annotation> annotations;
  Bytes live_before;      // level before the first event: the sum of the storages from before
  Bytes reserved_before;  // what the pool held before the first event
  bool complete = false;  // nothing is from before: the events begin with the process
  std::vector<std::string> inconsistencies;

  EventId end() const { return EventId{events.size()}; }
};

}  // namespace ullage::trace
