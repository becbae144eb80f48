// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes facts that only Ullage's own traces contain. They are the op, layer and step of a moment, what an op needs
// at once, and what autograd keeps for each layer until the backward pass.

#include "ullage/base/bytes.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/take/take.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

// Where in the program an event lies. The examples are those of a take. For other inputs request_place.h fills `layer`
// and `line` in its own form, and `phase`.
struct Place {
  std::string op;     // "aten::convolution_backward"; empty: between ops
  std::string layer;  // "netG.main.6"; else "after netG.main.6", "parameter 3 [512, 256, 4, 4]" or empty
  std::string line;   // the program's line that called the op, "train.py:57"; empty: unknown
  std::string part;   // a part that the program named, "sampling"; empty: none
  trace::Phase phase = trace::Phase::Unknown;
  std::uint64_t step = 0;  // from 1; 0: before the first step, or no step was found
  friend bool operator==(const Place&, const Place&) = default;
};

// "aten::convolution_backward of netD.main.6", "aten::relu after netD.main.6 (train.py:57)", "between two ops".
std::string op_in_words(const Place& place);
// " (train.py:57)", to be appended to what was made there; empty if the line is not known.
std::string line_in_words(const std::string& line);
// "backward of step 2", "sampling"; empty if unknown.
std::string time_in_words(const Place& place);

// The bytes that must be resident while one op runs, whatever a pager evicts. They are its arguments, plus the largest
// sum of its own storages that were live at once. Of an op that failed: its storages at the failure, and the refused
// bytes.
struct Need {
  trace::OpDetail detail;  // without uses
  std::string op;
  Bytes bytes;
};

// The bytes that autograd keeps for one layer, or for one op if the layer is not known.
struct SavedBy {
  std::string name;
  std::string line;  // the program's line that made most of it; empty: unknown
  Bytes bytes;
  std::uint64_t storages = 0;
};

// Another take of the same file, recorded with a lower value of one knob and the same values of all others.
struct SmallerTake {
  Knob then, now;  // the knob in the other take and in this one
  Bytes peak;      // of live bytes in the other take; below that of this take
};

struct TakeFacts {
  Place place;                         // of the moment
  std::optional<Need> need;            // of the op that failed at the moment; without a failure, the largest need
  Bytes saved;                         // activations for the backward pass, at the moment; each storage counts once
  std::vector<SavedBy> saved_by;       // largest first; they add up to `saved`
  std::uint64_t sliced = 0;            // ops that are slices of list ops
  std::optional<SmallerTake> smaller;  // the one with the next lower peak; diagnose.cpp sets it
};

TakeFacts take_facts(const trace::Take& take, const trace::TakeMeaning& meaning, const trace::Moment& moment);

// The op of an allocation is the one recorded with it. At any other event it is the op in flight that began last, or
// the last of those that failed if any did. Without an event all fields are empty.
Place place_at(const trace::Take& take, const trace::TakeMeaning& meaning, std::optional<EventId> event);

}  // namespace ullage::diagnose
