// SPDX-License-Identifier: Apache-2.0
#pragma once

// Do several takes do the same in the same order? Then one of them, with its sizes replaced, is what the program would
// do at any other size. Compared are events, ops (name, node, mode, which storage each use is of), saves, roles and
// borders; not compared are bytes, sizes of tensors, times, and the order of what one parallel region of an op's kernel
// does on its worker threads, as long as each order gives the same storages.

#include "ullage/base/result.h"
#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ullage::predict {

// The first place where two takes part.
struct Difference {
  std::size_t take = 0;  // index in the file, against take 0
  EventId event;         // of take 0; its end where the other one goes on
  std::string here;      // what take 0 does there: "aten::mean frees 4 B in backward"
  std::string there;     // what the other does
  std::string why;       // where it can be told: a rule of thresholds.h; else empty
};

// Half-open [begin, end).
struct EventRange {
  EventId begin, end;
};

// Of a storage from before that another take does not touch.
inline constexpr StorageId kNoPartner{UINT64_MAX};

struct Sequence {
  Grid grid;
  std::vector<std::size_t> order;  // index: place in the grid; value: index of the take in the file
  // Which storage of a take is which of take 0; index: the take in the file, then the StorageId of take 0. Ops and
  // charges are the same by their index.
  std::vector<std::vector<StorageId>> partners;
  // Scratch that its kernel takes at some sizes alone (varying_blocks.h); indices as of `partners`. It has no partners.
  std::vector<std::vector<bool>> left_out;
  // Events of take 0, births and deaths alone, of which some come from threads without an op of their own: in any
  // order.
  std::vector<EventRange> unordered;
};

// The grid that the takes make, and their places; nothing is compared. BadArgument as for compare().
Result<Sequence> arrange(const trace::TraceFile& file);

// BadArgument: the takes are no grid (missing, twice), or a knob has fewer than three values, or a take ran out of
// memory, or no size follows a knob ("a knob that changes nothing").
Result<std::variant<Sequence, Difference>> compare(const trace::TraceFile& file);

// The take at other values of the knobs: all that of the first take, with each storage's bytes and each use's sizes as
// the law gives them. Within a phase that told a most (BorderTold::knobs) a knob is no more than that. None: a size
// that follows no law; the first one is said.
std::variant<trace::Take, Difference> at(const trace::TraceFile& file, const Sequence& sequence,
                                         const std::vector<Knob>& knobs);

}  // namespace ullage::predict
