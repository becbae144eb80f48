// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares takes. If they do the same in the same order, the program would do the same at any other size, with other
// bytes. Events, ops (name, node, layer, mode; storage, type and rank of each use), saves, roles, borders and the
// places of charges are compared. Bytes, sizes of tensors and times are not compared. The order in which the worker
// threads of one op allocate and free may differ too, if the storages correspond.

#include "ullage/base/result.h"
#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ullage::predict {

// The first place where a take differs from take 0, or where a size follows no law.
struct Difference {
  std::size_t take = 0;  // index of the other take in the file
  EventId event;         // of take 0; the end of take 0 if only the other take goes on. Lost events: of the other take
  std::string here;      // what take 0 does there: "aten::mean frees 4 B in backward"
  std::string there;     // what the other take does; empty if a size follows no law
};

// Half-open [begin, end).
struct EventRange {
  EventId begin, end;
};

// In Sequence::partners: the other take never touches the storage, or the storage is left out.
inline constexpr StorageId kNoPartner{UINT64_MAX};

struct Sequence {
  Grid grid;
  std::vector<std::size_t> order;  // index: place in the grid; value: index of the take in the file
  // The storage of a take that corresponds to one of take 0. First index: the take in the file; second: the StorageId
  // of take 0. Ops and charges of all takes correspond by their index.
  std::vector<std::vector<StorageId>> partners;
  // Scratch that its kernel takes only at some sizes (varying_blocks.h), and that therefore has no partner. First
  // index: the take in the file; second: its own StorageId.
  std::vector<std::vector<bool>> left_out;
  // Inputs whose bytes need not follow a law. If they do not, an upper bound that follows one is used (input_work.h).
  // Index: StorageId of take 0. Empty: there are none.
  std::vector<bool> inputs{};
  // Ranges of births and deaths in take 0 whose order varies, because threads without an op of their own take part.
  std::vector<EventRange> unordered;
};

// Returns the grid and the order of the takes, without comparing them. BadArgument if the takes do not all vary the
// same one or two knobs, or form no grid (a take is missing or double). Also if a knob that varies has fewer than three
// values, or if a take ran out of memory.
Result<Sequence> arrange(const trace::TraceFile& file);

// Compares all takes with take 0. Lost events (Take::gaps) are a difference. BadArgument: as for arrange(), or a knob
// changes no size.
Result<std::variant<Sequence, Difference>> compare(const trace::TraceFile& file);

// Returns take 0 with the bytes and tensor sizes that the laws give at other values of the knobs. In a phase for which
// the program states a largest value (ReportedBorder::knobs), a knob counts at most as that value. Returns a Difference
// for the first size that follows no law.
std::variant<trace::Take, Difference> at(const trace::TraceFile& file, const Sequence& sequence,
                                         const std::vector<Knob>& knobs);

}  // namespace ullage::predict
