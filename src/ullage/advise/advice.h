// SPDX-License-Identifier: Apache-2.0
#pragma once

// The answer of `ullage advise`, as data: what the program needs, and what each remedy does to it. The report layer
// writes it.

#include "ullage/advise/trials.h"
#include "ullage/base/bytes.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ullage::advise {

// How a row's figures were found.
enum class Basis {
  Tried,     // the program ran with the remedy
  Planned,   // worked out from the recording and verified; `ullage run` does it
  Computed,  // arithmetic on the recording of the plain program: the peak is at best this
  NotTried,  // `note` says why
};

// What a run held, for a picture. Each step is cut into kParts parts with equally many events of its recording (of a
// plan: with equally many ops). A part has the most that was held in it. The first step begins with the recording.
struct Curve {
  static constexpr std::size_t kParts = 300;
  struct Step {
    std::vector<Bytes> tensors;  // kParts, or none: not known
    // The bytes of tensors plus those that the allocator caches; on the CPU the same as `tensors`.
    std::vector<Bytes> held;
  };
  std::vector<Step> steps;
  Bytes beside;  // the CUDA context, or the rest of the process; not counted in `tensors` and `held`
};

// On the CPU: the same run as a process without Ullage. It holds more, because malloc keeps what is freed.
struct Plainly {
  Bytes peak;                 // VmHWM of the process that trains, and `others`
  Bytes others;               // of `peak`: what the other processes, such as a data loader's workers, hold beside it
  std::optional<Bytes> lean;  // with kLeanMalloc; none: not tried

  // Does `memory` have room for a sixteenth more than `peak`? In another run of the same program malloc's free blocks
  // lie elsewhere, and the peak was seen to be up to 5 % higher. With kLeanMalloc it was 0.1 %.
  bool fits_surely(Bytes memory) const { return peak + peak / 16 <= memory; }
};

struct Row {
  std::string id, name;
  Effect effect = Effect::SameBits;
  bool effect_known = true;  // false: the remedy is one that explain computes, and `effect` has no meaning
  Basis basis = Basis::Tried;
  std::optional<bool> fits;   // none: not known
  std::optional<Bytes> peak;  // on a card, what nvidia-smi would show; on the CPU, all processes of the program
  std::optional<Plainly> plainly{};
  std::optional<double> more_time;  // of a step, as a part of the plain program's; none: not known
  std::string action;               // what a person writes or types
  Place place;                      // at which line; may be unknown
  std::string note;                 // an error, why it was not tried, what it costs; may be empty
  std::optional<Curve> curve{};     // if a picture was asked for and the run was recorded
};

struct Advice {
  std::vector<std::string> command;
  std::string device;   // "NVIDIA GeForce RTX 3060", "cpu"
  Bytes memory;         // of that device, or the budget asked about
  Row plain;            // the program as it is
  std::string refused;  // if it does not fit: the refused request, and where it was made
  std::vector<Row> rows;
  std::vector<std::string> notes;
  std::string time_basis;  // how `more_time` was found; empty: no row has it
  Seconds wall;            // of all runs
  std::size_t runs = 0;
};

// Sorts the rows: those that fit first. Among these, rows that were tried or planned come before computed ones. Then
// rows with the same bits come first, then rounding, then different results, then those of unknown effect. Equal ones
// are sorted by time, then by peak; unknown times and peaks come last. Rows that do not fit, and rows for which `fits`
// is not known, follow by their peaks. Equal rows keep their order.
void sort_rows(Advice& advice);

}  // namespace ullage::advise
