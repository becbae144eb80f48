// SPDX-License-Identifier: Apache-2.0
#pragma once

// A take is Ullage's own recording of a program: a trace, and facts that can only be known inside the process. These
// are what each op read and wrote and in which mode, what autograd saved, which storages are parameters and gradients,
// and where steps end. A file `*.ullage` holds any number of takes (trace_file.h); docs/trace_file.md describes its
// bytes.
//
// A take is one run of a program from its beginning, with certain values of its knobs. To predict a program, several
// takes are recorded: one at `batch` 2, one at 3, one at 4.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/base/knob.h"
#include "ullage/trace/recording/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::trace {

// One tensor that an op received or returned. Each view of a storage is a use of its own.
struct TensorUse {
  enum class How : std::uint8_t { Read, Written, Output };
  StorageId storage;
  How how = How::Read;
  std::uint8_t dtype = 0;  // c10::ScalarType as a number: 6 is float
  std::vector<std::int64_t> sizes;
  friend bool operator==(const TensorUse&, const TensorUse&) = default;
};

// The bytes of an op's arguments that the recording does not know, because they are not the pool's.
struct OutsideReads {
  bool mapped = false;  // some are weights mapped from a file, which only ops change
  bool other = false;   // some are bytes of another kind: anybody may change them unseen
  friend bool operator==(const OutsideReads&, const OutsideReads&) = default;
};

// The facts about an op besides its name. The name is in trace.ops at the same index.
struct OpDetail {
  std::uint32_t thread = 0;  // threads are numbered in the order of their first event
  bool backward = false;     // autograd's engine ran it
  bool grad_mode = false;    // autograd was recording operations
  bool failed = false;       // it threw; false if its end was not recorded
  bool sliced = false;       // it is one slice of a list op that Ullage cut to fit the budget
  OutsideReads outside;      // all false if its end was not recorded
  std::string node;          // "ConvolutionBackward0": the graph node that ran it; empty outside backward
  std::string layer;         // "netG.main.6" if the program named its parameters, else empty
  std::string line;          // "train.py:57": the line of the program that called it; empty if unknown
  EventId begin, end;        // its OpBegin and OpEnd; the end of the trace if it was still running
  Seconds took;              // from begin to end; zero if it was still running
  std::vector<TensorUse> uses;
  friend bool operator==(const OpDetail&, const OpDetail&) = default;
};

enum class Role : std::uint8_t {
  Parameter,  // a leaf that requires grad holds it
  Gradient,   // it is the .grad of such a leaf
};
// The storage was seen in this role for the first time, or its name became known. Roles that a storage from before had
// before the take are repeated at the take's first event.
struct RoleSeen {
  EventId at;  // just before this event; the trace's end if none follows
  StorageId storage;
  Role role = Role::Parameter;
  std::string name;  // of a parameter, if the program gave it: "netG.main.6.weight"
  friend bool operator==(const RoleSeen&, const RoleSeen&) = default;
};

// A border that the program itself reported. Phases do not nest.
struct ReportedBorder {
  enum class What : std::uint8_t { StepEnd, PhaseBegin, PhaseEnd };
  EventId at;  // as in RoleSeen
  What what = What::StepEnd;
  std::string phase;  // "sampling"; empty for StepEnd
  // For PhaseBegin: the largest values that knobs have in this phase. For example, only 64 samples are drawn at a batch
  // of 128. The sizes of the phase's storages follow the knob up to that value.
  std::vector<Knob> knobs;
  friend bool operator==(const ReportedBorder&, const ReportedBorder&) = default;
};

// Bytes outside the pool that the program took and reported (a decoder's buffer). Negative if it gave them back.
struct Charged {
  EventId at;  // as in RoleSeen
  std::int64_t bytes = 0;
  friend bool operator==(const Charged&, const Charged&) = default;
};

// The recorder keeps the first and the last part of a long run. One event, a Mark, stands for everything in between.
// The level after it is right. Storages that were born in the gap and live on are born at the Mark. Storages from
// before it that died in the gap die at the Mark, and ops from before it that ended in the gap end there. If an op
// began in the gap and ended later, its end is a Mark too.
struct Gap {
  EventId at;
  std::uint64_t events = 0;  // lost
  friend bool operator==(const Gap&, const Gap&) = default;
};

// Figures of the process at the end of the take. Zero: unknown.
struct ProcessFigures {
  Bytes peak;                 // VmHWM of the process; for a card the most bytes of the process on it that were seen
  Bytes outside_peak;         // the most resident bytes outside the pool
  Bytes pool_live_peak;       // as the pool counts them
  Bytes pool_resident_peak;   // as the pool counts them
  std::uint32_t threads = 0;  // with which torch computes
  Bytes outside_expected;     // what a run reserves for the outside: its bytes at the start plus the warm-up
  friend bool operator==(const ProcessFigures&, const ProcessFigures&) = default;
};

struct Take {
  enum class End : std::uint8_t { Program, StepBorder, OutOfMemory };  // why the recording ended
  std::vector<Knob> knobs;                                             // empty: nothing was varied
  Trace trace;  // its addresses are made up, its stacks are made by take_meaning.h; event times are set
  std::vector<OpDetail> details;  // index: OpId, as trace.ops
  std::vector<RoleSeen> roles;    // in the order of events, as are the next three
  std::vector<ReportedBorder> borders;
  std::vector<Charged> charges;
  std::vector<Gap> gaps;
  ProcessFigures process;
  End end = End::Program;
};

// What makes the program's results differ from those of the plain program, because a person asked for it.
struct ResultChange {
  std::string what;     // the option: "--allow bf16", "--micro-batch 4"
  std::string results;  // "rounding" or "different"
  friend bool operator==(const ResultChange&, const ResultChange&) = default;
};

// A whole file.
struct TraceFile {
  std::string torch;  // "2.13.0"
  std::string device = "cpu";
  std::vector<std::string> command;          // the command line of the program
  std::vector<Knob> at;                      // the sizes to be predicted, if it was recorded for a prediction
  std::vector<std::string> phases_left_out;  // phases of the program that a rehearsal skips: "checkpoint"
  std::vector<Take> takes;
  std::vector<Choice> choices{};
  std::vector<std::string> sides{};  // knobs that are the sides of one picture: "width", "height"
  bool onednn = true;                // torch was allowed to use oneDNN: other kernels with other scratch
  std::vector<ResultChange> changes{};
};

}  // namespace ullage::trace
