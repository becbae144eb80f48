// SPDX-License-Identifier: Apache-2.0
#pragma once

// What only Ullage's own recording tells: in which op, layer and step a moment lies, what an op needs at once, what
// autograd keeps by layer.

#include "ullage/base/bytes.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/take/take.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

// Where in the program an event lies.
struct Place {
  std::string op;     // "aten::convolution_backward"; empty: between ops
  std::string layer;  // "netG.main.6"; where the program told no names, or the op has none, what else is known
  std::string line;   // of the program, that called the op: "train.py:57"; empty: not known
  std::string part;   // that the program named itself: "sampling"
  trace::Phase phase = trace::Phase::Unknown;
  std::uint64_t step = 0;  // from 1; 0: no step was found
  friend bool operator==(const Place&, const Place&) = default;
};

// "aten::convolution_backward of netD.main.6", "aten::relu after netD.main.6 (train.py:57)", "between two ops".
std::string op_in_words(const Place& place);
// " (train.py:57)", to go behind what was made there; empty where the line is not known.
std::string line_in_words(const std::string& line);
// "backward of step 2", "sampling"; empty: not known.
std::string time_in_words(const Place& place);

// What has to be there while one op runs, whatever a pager puts aside: what it was given, and the most of what it made
// that was live at once.
struct Need {
  trace::OpDetail detail;  // without uses
  std::string op;
  Bytes bytes;
};

// Of one layer, or of an op where the program told no layers.
struct SavedBy {
  std::string name;
  std::string line;  // of the program: that which made most of it; empty: not known
  Bytes bytes;
  std::uint64_t storages = 0;
};

// Another take of the file, recorded with less of one thing and the same of all others.
struct SmallerTake {
  Knob then, now;
  Bytes peak;  // of live bytes; below that of this take
};

struct TakeFacts {
  Place place;                         // of the moment
  std::optional<Need> need;            // of the op that failed at the moment; else of that which needs most
  Bytes saved;                         // for the backward pass, at the moment; each storage counts once
  std::vector<SavedBy> saved_by;       // largest first; they add up to `saved`
  std::uint64_t sliced = 0;            // ops that are slices of list ops
  std::optional<SmallerTake> smaller;  // the next smaller one; filled by who knows the whole file
};

TakeFacts take_facts(const trace::Take& take, const trace::TakeMeaning& meaning, const trace::Moment& moment);

Place place_at(const trace::Take& take, const trace::TakeMeaning& meaning, std::optional<EventId> event);

}  // namespace ullage::diagnose
