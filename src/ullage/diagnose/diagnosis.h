// SPDX-License-Identifier: Apache-2.0
#pragma once

// The diagnosis of an out-of-memory error, as data: what happened, who held the bytes, why the request failed, and what
// to do. The layer report writes it. The parts of every whole add up. A figure that is not known is absent, never zero.

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
  std::string torch;                  // the torch versions that write such an input; empty: unknown
  std::string form;                   // a message's wording or a snapshot's layout
  std::uint64_t line = 0;             // in the log, of a message or table
  std::uint64_t repeated = 1;         // how often the log has the message
  std::optional<std::size_t> take{};  // for a trace: index of the take in the file
  std::vector<Knob> knobs{};          // of that take
};

// The program that wrote the message in the input, or that made the recording.
struct Spoken {
  std::string id;    // "vllm", "torch"; docs/explain.md lists them
  std::string name;  // "vLLM", "PyTorch"
  std::string seen;  // what showed it: "\"vllm\" in the traceback"
};

// Figures under the names of PyTorch's messages (trace::OutOfMemory says what each counts). None: neither stated nor
// computable.
struct Facts {
  std::optional<unsigned> device;
  std::optional<Bytes> requested, capacity, allocated, free, reserved, unallocated, process, allowed, needed;
};

struct Cause {
  std::string id;                     // "fragmentation"
  std::string title;                  // one line for a person
  double confidence = 0;              // probability that it made this request fail; calibration: docs/measured.md
  std::vector<std::string> evidence;  // each with the numbers compared
};

enum class Basis {
  Simulated,  // from a replay of the recorded events under the change
  Computed,   // arithmetic on figures of the input
  Known,      // from practice; this input does not show how much it saves
};

struct Remedy {
  std::string id;
  std::string action;          // the exact setting or code
  std::optional<Bytes> saves;  // bytes; none: not known
  Basis basis = Basis::Known;
  std::string why;  // why or where it helps, or what it costs; may be empty
};

// The device as one bar. If the device's size is not known, the bar is the caching allocator's memory, with what was
// free on the device if that is known. If the allocator's memory is not known either, it is the live bytes alone. For a
// message of Apple's MPS it is the bytes that the process is allowed.
struct Bar {
  struct Part {
    enum class Kind {
      Live,
      Usable,      // cached, in segments where nothing is live; of a recording without segments: all that is cached
      Stuck,       // cached, beside live blocks; of a message: all that is cached
      NotPyTorch,  // of other processes, or of this one outside PyTorch's pool
      Free
    };
    Kind kind = Kind::Live;
    std::string name;  // an owner's category, "cached and usable", ...
    Bytes bytes;
  };
  std::vector<Part> parts;  // in the order of Kind; their bytes add up to `total`
  Bytes total;
  std::string of;  // what `total` is: "GPU 0, 23.69 GiB", "reserved by PyTorch on GPU 0"
};

// The live bytes at the moment diagnosed: a failure, the peak, or the moment asked for.
struct Peak {
  Bytes bytes;
  std::optional<EventId> event;      // none: before the first event
  std::vector<trace::Owner> owners;  // largest first; they add up to `bytes`
};

// The activations that autograd keeps for the backward pass, by layer.
struct Saved {
  Bytes bytes;
  std::vector<SavedBy> by;  // largest first; they add up to `bytes`
};

// One of several devices of a snapshot.
struct DeviceShare {
  unsigned device = 0;
  Bytes live_peak, reserved_peak;
  std::optional<Bytes> refused;  // the last request that failed there
};

struct Diagnosis {
  Source source;
  std::optional<Spoken> tool;  // none: no known program's words
  std::string headline;        // one line: what happened, with its figures
  Facts facts;
  std::optional<Bar> bar;    // none: the input has too few figures
  std::optional<Peak> peak;  // none: the input does not show who held what
  // Where in the program the moment lies. Set for every trace; for another input if a request failed and its stack or
  // traceback shows the program's own code or a model's forward.
  std::optional<Place> place;
  std::string asked_by;              // the place in words, unless the headline has it; empty: not known
  std::vector<DeviceShare> devices;  // of a snapshot with several devices, by number
  std::optional<Saved> saved;        // at that moment; only for a trace
  std::optional<sim::Replay> replay;
  std::vector<Cause> causes;       // most probable first
  std::vector<Remedy> remedies;    // most bytes saved first; those without a figure last (remedies.h: their order)
  std::vector<std::string> notes;  // contradictions in the input, and what it cannot show
  std::string to_know_more;        // what to record to be sure, and how; empty: nothing more is needed
  std::string next;                // the next command
};

}  // namespace ullage::diagnose
