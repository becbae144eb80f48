// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program may ask of Ullage's runtime and tell it. No torch in this header. Every call is safe and cheap in a
// plain run (one not started by `ullage run`): then active() is false and the calls do nothing.

#include "ullage/base/bytes.h"
#include "ullage/base/knob.h"
#include "ullage/base/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::runtime {

// True when a budgeted pool stands behind torch's allocator in this process: of the processor, or of a card.
bool active();

// Begins a budget in the midst of this process, which `ullage run` did not start; states it anew where one was begun
// so. Tensors that are there stay where they are, outside the pool. `spill`: as of `ullage run --spill`, empty: the
// default. `record_file`: an absolute path; empty: nothing is recorded; of the first call alone. BadArgument: the
// process needs more than `memory` already, a folder that will not do, a budget that is `ullage run`'s.
Status begin_budget(Bytes memory, const std::string& spill, const std::string& record_file);
// The pool stays, unlimited until a budget is begun again; what was recorded so far is written. Nothing where none was
// begun.
void lift_budget();

// What this process does is written down: what is told now for recordings will be in the file.
bool recording();

// A step of the program ended. Counts steps and their times; the summary and the "steps left" warning rest on it.
void mark_step();

struct MemoryStatus {
  Bytes budget;    // stated; zero: unlimited
  Bytes resident;  // of the process, as the operating system counts it, or of a card
  Bytes live;      // of tensors in the pool
};
// As of now; zeros in a plain run.
MemoryStatus memory_status();

// Bytes that a library is about to take outside the pool (an image decoder's buffer). While the charge lives the pool
// keeps that much free for them. Throws c10::OutOfMemoryError when the budget has no room. Null in a plain run.
class Charge {
 public:
  virtual ~Charge() = default;
};
std::unique_ptr<Charge> charge_outside(Bytes bytes, std::string_view what);

// ---- For recordings. Nothing of it costs anything where nothing is recorded.

// The parameter whose bytes begin at `data` is called `name`: "netG.main.6.weight". What comes before the last dot is
// the layer, and ops that use the parameter are told by it.
void name_parameter(const void* data, std::string_view name);

// What a program does beside its steps, for as long as this lives: "sampling". Not nested. `most`: the most that a knob
// is in this phase, whatever it is outside: of a batch of 128 only 64 samples are drawn.
class Phase final {
 public:
  explicit Phase(std::string_view name, const std::vector<Knob>& most = {});
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
};

// A rehearsal: `ullage predict` has started this program to see what it does at small sizes. It then does nothing that
// lasts, and runs once for each of `takes`, wholly: from making its networks to letting go of them.
//
//   for (const auto& knobs : rehearsal.takes) { const Take take(knobs); ... a few steps at these sizes ... }
struct Rehearsal {
  std::vector<std::vector<Knob>> takes;  // empty: no rehearsal, the program is to work
};
bool rehearsing();
// What a program offers to try.
struct RehearsalOffer {
  std::vector<Knob> knobs;  // that it can vary, with the values asked for on its command line
  // Small values for each, ascending, three at least, used where nobody chose others. A knob that is asked for below
  // them is tried as it is, and then one value more of the other.
  std::vector<std::vector<std::int64_t>> usual;
  std::vector<Choice> choices;
  std::vector<std::string> left_out;  // what a rehearsal does not do ("checkpoint")
  std::vector<std::string> sides{};   // knobs that are sides of one picture: the largest square is told
};
Rehearsal rehearsal(const RehearsalOffer& offer);

// One take of a rehearsal, for as long as it lives.
class Take final {
 public:
  explicit Take(const std::vector<Knob>& knobs);
  ~Take();
  Take(const Take&) = delete;
  Take& operator=(const Take&) = delete;
};

// ---- For the report

// The SHA-256 of the program's final state, 64 hexadecimal digits.
void report_state(std::string_view sha256);

}  // namespace ullage::runtime
