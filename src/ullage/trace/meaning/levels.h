// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many bytes were live and reserved after each event, and who held them at one.

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/trace.h"

#include <optional>
#include <string_view>
#include <vector>

namespace ullage::trace {

// Index: EventId. One pass over the events.
struct Levels {
  std::vector<Bytes> live;      // until free_completed, as memory_viz counts
  std::vector<Bytes> reserved;  // equal to live where the source does not know segments
};
Levels levels(const Trace& trace);

// A point in the history: after `event`, or before the first one (also of a trace with no events).
struct Moment {
  std::optional<EventId> event;
  Bytes live;
  Bytes reserved;
};

enum class At { Peak, OutOfMemory, End };
// The first event with the most live bytes; the last out-of-memory event; the end. None: there is no such event.
std::optional<Moment> find(const Trace& trace, const Levels& levels, At at);

// What owners_at() and every other report call it by.
std::string_view owner_name(const Storage& storage, const std::vector<StackMeaning>& meanings);

// The storages live at the moment, by (category, name), largest first; their bytes add up to moment.live exactly.
std::vector<Owner> owners_at(const Trace& trace, const Moment& moment, const std::vector<StackMeaning>& meanings);
// The same for who has the categories() of the trace at hand.
std::vector<Owner> owners_at(const Trace& trace, const Moment& moment, const std::vector<StackMeaning>& meanings,
                             const std::vector<Category>& categories);

}  // namespace ullage::trace
