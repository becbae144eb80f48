// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares the calls that a program may make to Ullage's runtime. This header includes no torch. In a plain run (no
// `ullage run`, no begin_budget()) active() is false, and every call but begin_budget() is cheap and does nothing.

#include "ullage/base/bytes.h"
#include "ullage/base/knob.h"
#include "ullage/base/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::runtime {

// True if torch's allocator in this process is a budgeted pool, for the CPU or for a card.
bool active();

// Begins a budget in a running process that `ullage run` did not start. A later call only changes the stated bytes.
// Existing tensors stay where they are, outside the pool. `spill`: as for `ullage run --spill`; empty: the default.
// `record_file`: an absolute path; empty: nothing is recorded. BadArgument: `memory` is zero or less than the process
// needs already, the spill folder is unsuitable, or the process has a budget of `ullage run`.
Status begin_budget(Bytes memory, const std::string& spill, const std::string& record_file);
// Makes the pool unlimited until a budget is begun again, and writes what was recorded so far. No effect if
// begin_budget() was never called.
void lift_budget();

// True if this process is recorded: phases and names that the program gives now will be in the trace file.
bool recording();

// Reports that a step of the program ended. From the first call on, steps are counted and planned by these calls.
// Without them, the steps to plan are found in the program's ops, and steps are counted in Python only, by the calls of
// its optimizers. The warning that the budget will be full in so many steps needs these calls.
void mark_step();

struct MemoryStatus {
  Bytes budget;    // stated; zero: unlimited
  Bytes resident;  // of the process, as the operating system counts; or what it holds of the card
  Bytes live;      // of tensors in the pool, moved out or not
};
// As of now; zeros in a plain run.
MemoryStatus memory_status();

// A reservation of bytes that a library is about to take outside the pool (an image decoder's buffer). It lasts as
// long as the object. Throws c10::OutOfMemoryError if the budget has no room. Null in a plain run. Reserves nothing
// if the budget is a card's.
class Charge {
 public:
  virtual ~Charge() = default;
};
std::unique_ptr<Charge> charge_outside(Bytes bytes, std::string_view what);

// ---- For recordings. These calls cost nothing if nothing is recorded.

// Names the parameter whose bytes begin at `data`, for example "netG.main.6.weight". The part before the last dot is
// the layer, which is recorded with each op that uses the parameter.
void name_parameter(const void* data, std::string_view name);

// Marks a phase that is not one of the program's steps ("sampling"), for as long as the object lives. Phases do not
// nest. `most`: in this phase a knob counts at most as this value. For example, {"batch", 64} if at most 64 samples are
// drawn, even at a batch of 128.
class Phase final {
 public:
  explicit Phase(std::string_view name, const std::vector<Knob>& most = {});
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
};

// A rehearsal: `ullage predict` has started this program to see what it does at small sizes. The program then leaves
// nothing behind. It runs once in full for each of `takes`, from making its networks to destroying them.
//
//   for (const auto& knobs : rehearsal.takes) { const Take take(knobs); ... a few steps at these sizes ... }
struct Rehearsal {
  std::vector<std::vector<Knob>> takes;  // empty: no rehearsal, the program does its work
};
bool rehearsing();
// The sizes that a program offers to vary in a rehearsal.
struct RehearsalOffer {
  std::vector<Knob> knobs;  // with the values asked for on the command line
  // At least three small values for each knob, ascending, used unless the person chose others. If the asked value of a
  // knob lies below them, only that value is tried, and the other knobs get one more value each.
  std::vector<std::vector<std::int64_t>> usual;
  // Options that a prediction may try with other values to find what fits; those whose trials are quick come first.
  std::vector<Choice> choices;
  std::vector<std::string> left_out;  // phases that a rehearsal skips ("checkpoint")
  std::vector<std::string> sides{};   // knobs that are sides of one picture: the prediction names the largest square
};
Rehearsal rehearsal(const RehearsalOffer& offer);

// One take of a rehearsal, for as long as the object lives.
class Take final {
 public:
  explicit Take(const std::vector<Knob>& knobs);
  ~Take();
  Take(const Take&) = delete;
  Take& operator=(const Take&) = delete;
};

// ---- For the report

// Says, in a recording, that an option makes results differ from those without it: "--precision bf16", and how,
// "rounding" or "different" (trace::ResultChange). `ullage plan --allow` compares such recordings.
void changes_results(std::string_view what, std::string_view results);

// Puts the SHA-256 of the program's final state (64 hexadecimal digits) into the run's report.
void report_state(std::string_view sha256);

}  // namespace ullage::runtime
