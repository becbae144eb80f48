// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many bytes were live and reserved after each event, and who held them at a moment.

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/trace.h"

#include <optional>
#include <string_view>
#include <vector>

namespace ullage::trace {

// Index: EventId. One pass over the events.
struct Levels {
  std::vector<Bytes> live;      // counted until free_completed, as PyTorch's memory_viz does
  std::vector<Bytes> reserved;  // equal to live if the trace has no segments
};
Levels levels(const Trace& trace);

// A moment in a trace: after `event`, or before the first event if that is none.
struct Moment {
  std::optional<EventId> event;
  Bytes live;
  Bytes reserved;
};

enum class At { Peak, OutOfMemory, End };
// Peak: the first event with the most live bytes, or the moment before the first event if more bytes were live then.
// OutOfMemory: the last out-of-memory event; none if there is no such event. End: the last event.
std::optional<Moment> find(const Trace& trace, const Levels& levels, At at);

// The name that owners_at() and all other reports use for a storage.
std::string_view owner_name(const Storage& storage, const std::vector<StackMeaning>& meanings);

// The storages that are live at the moment, one Owner for each (category, name), largest first. Their bytes add up to
// moment.live exactly.
std::vector<Owner> owners_at(const Trace& trace, const Moment& moment, const std::vector<StackMeaning>& meanings);
// The same, for callers that have the categories() of the trace already.
std::vector<Owner> owners_at(const Trace& trace, const Moment& moment, const std::vector<StackMeaning>& meanings,
                             const std::vector<Category>& categories);

}  // namespace ullage::trace
