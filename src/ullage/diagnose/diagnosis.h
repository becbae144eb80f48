// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Ullage says of an out-of-memory error: what happened, who held the bytes, why the request failed, what to do.
// Data only; report writes it. The parts of every whole add up, and a figure nobody knows is absent, never zero.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/diagnose/take_facts.h"
#include "ullage/sim/replay.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/out_of_memory.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

struct Source {
  std::string kind;                   // "snapshot", "message", "memory_summary", "kineto", "trace"
  std::string file;                   // as given; "-" for standard input
  std::string torch;                  // the versions that write it so; empty: cannot be told
  std::string form;                   // of a message its wording, of a snapshot its layout
  std::uint64_t line = 0;             // of a message
  std::uint64_t repeated = 1;         // of a message
  std::optional<std::size_t> take{};  // of a trace: which of the file's takes, from 0
  std::vector<Knob> knobs{};          // of that take
};

// In the words of PyTorch's messages; none: not said and not to be worked out.
struct Facts {
  std::optional<unsigned> device;
  std::optional<Bytes> requested, capacity, allocated, free, reserved, unallocated, process, allowed;
};

struct Cause {
  std::string id;                     // "fragmentation"
  std::string title;                  // one line for a person
  double confidence = 0;              // that it is what made this request fail; calibrated: docs/explain.md
  std::vector<std::string> evidence;  // with both numbers
};

enum class Basis {
  Simulated,  // the recorded events were run again under the change
  Computed,   // arithmetic on figures of the input
  Known,      // practice; how much it saves here cannot be told from this input
};

struct Remedy {
  std::string id;
  std::string action;  // the exact setting or code
  std::optional<Bytes> saves;
  Basis basis = Basis::Known;
  std::string why;  // which cause it is for, or what it costs; may be empty
};

// The device (or the pool, where nothing is known of the device) as one bar.
struct Bar {
  struct Part {
    enum class Kind { Live, Usable, Stuck, NotPyTorch, Free };
    Kind kind = Kind::Live;
    std::string name;  // an owner's category, "cached and usable", ...
    Bytes bytes;
  };
  std::vector<Part> parts;  // in that order; their bytes add up to `total`
  Bytes total;
  std::string of;  // what `total` is: "GPU 0, 23.69 GiB", "reserved by PyTorch"
};

struct Peak {
  Bytes bytes;
  std::optional<EventId> event;
  std::vector<trace::Owner> owners;  // largest first; they add up to `bytes`
};

// What autograd keeps for the backward pass, by layer.
struct Saved {
  Bytes bytes;
  std::vector<SavedBy> by;  // largest first; they add up to `bytes`
};

struct Diagnosis {
  Source source;
  std::string headline;  // one line: what happened, with its figures
  Facts facts;
  std::optional<Bar> bar;      // none: the input has too few figures
  std::optional<Peak> peak;    // none: the input does not say who held what
  std::optional<Place> place;  // of the peak's moment; of a trace
  std::optional<Saved> saved;  // at that moment; of a trace
  std::optional<sim::Replay> replay;
  std::vector<Cause> causes;       // most probable first
  std::vector<Remedy> remedies;    // most bytes saved first, those with no figure last, in the order of their causes
  std::vector<std::string> notes;  // what the input contradicts itself in, what it cannot tell
  std::string to_know_more;        // what to record to be sure, and how; empty: nothing is open
  std::string next;                // the next command
};

}  // namespace ullage::diagnose
