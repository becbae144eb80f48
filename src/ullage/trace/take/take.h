// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Ullage's own recorder saw of a program: a trace, and beside it what only somebody inside the process can know:
// which op read and wrote what, in which mode, what autograd saved, which storages are parameters and gradients, where
// steps end. A file `*.ullage` holds one take or more (trace_file.h); docs/trace_file.md has its bytes.
//
// A take is one run of a program from its beginning, at the values that its knobs had: `batch` 2, then 3, then 4.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/base/knob.h"
#include "ullage/trace/recording/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::trace {

// One tensor that an op received or returned. Views of one storage are uses of it each.
struct TensorUse {
  enum class How : std::uint8_t { Read, Written, Output };
  StorageId storage;
  How how = How::Read;
  std::uint8_t dtype = 0;  // c10::ScalarType as a number: 6 is float
  std::vector<std::int64_t> sizes;
  friend bool operator==(const TensorUse&, const TensorUse&) = default;
};

// What is known of an op beside its name, which stands in trace.ops at the same index.
struct OpDetail {
  std::uint32_t thread = 0;  // threads are numbered in the order of their first event
  bool backward = false;     // run by autograd's engine
  bool grad_mode = false;    // operations were being recorded for autograd
  bool failed = false;       // threw
  bool sliced = false;       // a slice of a list op that was cut to fit a budget
  std::string node;          // "ConvolutionBackward0": the node of the graph it was run for; empty outside backward
  std::string layer;         // "netG.main.6", where the program told its parameters' names; else empty
  std::string line;          // "train.py:57": of the program, that called it; empty where that is not known
  EventId begin, end;        // of its OpBegin and OpEnd; end of the trace where it was still running
  Seconds took;              // from begin to end; zero where it was still running
  std::vector<TensorUse> uses;
  friend bool operator==(const OpDetail&, const OpDetail&) = default;
};

enum class Role : std::uint8_t {
  Parameter,  // a leaf that requires grad holds it
  Gradient,   // it is the .grad of such a leaf
};
// Before an event: the first time that the storage was met in that role, and again when its name becomes known. What a
// storage from before was met as before the take stands at its first event.
struct RoleSeen {
  EventId at;  // it lies before this event; the trace's end where none follows
  StorageId storage;
  Role role = Role::Parameter;
  std::string name;  // of a parameter, where the program told it: "netG.main.6.weight"
  friend bool operator==(const RoleSeen&, const RoleSeen&) = default;
};

// A border that the program itself told. Phases do not nest.
struct BorderTold {
  enum class What : std::uint8_t { StepEnd, PhaseBegin, PhaseEnd };
  EventId at;  // as of RoleSeen
  What what = What::StepEnd;
  std::string phase;  // "sampling"; empty of StepEnd
  // Of PhaseBegin: the most that a knob is in this phase, where there is one (of a batch of 128 only 64 samples are
  // drawn). What is made there follows the knob up to that.
  std::vector<Knob> knobs;
  friend bool operator==(const BorderTold&, const BorderTold&) = default;
};

// Bytes that the program takes outside the pool and tells (a decoder's buffer); negative: it gave them back.
struct Charged {
  EventId at;  // as of RoleSeen
  std::int64_t bytes = 0;
  friend bool operator==(const Charged&, const Charged&) = default;
};

// The recorder keeps the first and the last part of a long run. All that was born and died in between stands at one
// event (a Mark): its level is right, what happened within is lost. Storages that were born in it and live on are born
// at that event, those that died in it die there, and so do ops end; one that began in it has a Mark where it ends.
struct Gap {
  EventId at;
  std::uint64_t events = 0;  // lost
  friend bool operator==(const Gap&, const Gap&) = default;
};

// What the process looked like at the end of the take; zeros: not known.
struct ProcessFigures {
  Bytes peak;                 // VmHWM
  Bytes outside_peak;         // most resident bytes that were not the pool's
  Bytes pool_live_peak;       // as the pool counts
  Bytes pool_resident_peak;   // likewise
  std::uint32_t threads = 0;  // that torch computes with
  Bytes outside_expected;     // what a run sets aside for the outside: as it stood at the start, and for first steps
  friend bool operator==(const ProcessFigures&, const ProcessFigures&) = default;
};

struct Take {
  enum class End : std::uint8_t { Program, StepBorder, OutOfMemory };  // why the recording ended
  std::vector<Knob> knobs;                                             // empty: nothing was varied
  Trace trace;  // no addresses and stacks of its own (take_meaning.h gives it stacks); event times are set
  std::vector<OpDetail> details;  // index: OpId, as trace.ops
  std::vector<RoleSeen> roles;    // by event, as the three below
  std::vector<BorderTold> borders;
  std::vector<Charged> charges;
  std::vector<Gap> gaps;
  ProcessFigures process;
  End end = End::Program;
};

// What stands in the file once.
struct TraceFile {
  std::string torch;  // "2.13.0"
  std::string device = "cpu";
  std::vector<std::string> command;          // as it was started
  std::vector<Knob> at;                      // the sizes asked for, where it was recorded to predict them; else empty
  std::vector<std::string> phases_left_out;  // of the program, that a rehearsal does not run: "checkpoint"
  std::vector<Take> takes;
  std::vector<Choice> choices{};
  std::vector<std::string> sides{};  // knobs of the takes that are sides of one picture: "width", "height"
  bool onednn = true;                // torch was allowed to use it: other kernels, other scratch
};

}  // namespace ullage::trace
