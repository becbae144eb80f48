// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the remedies that can be tried on a program without a change of its text. Each remedy tests whether it applies
// to the program. It names the switch, or the setting of the environment, that turns it on for a trial. It also has the
// lines that a person writes to keep it. To add a remedy, add a row to the table in trials.cpp and one to
// docs/advise.md, which a test asks for. If its switch is new, switches.py needs code for it too.

#include "ullage/advise/facts.h"
#include "ullage/base/knob.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::advise {

// The id of rows about a smaller size. `ullage explain` has the same id for that remedy.
inline constexpr const char* kSmallerSize = "smaller_batch";

// With this setting, malloc of glibc gives blocks of 128 KiB and more back to the system when they are freed. Without
// it malloc raises that border, up to 32 MiB, and the process keeps the smaller blocks that it frees.
inline constexpr std::pair<const char*, const char*> kLeanMalloc = {"MALLOC_MMAP_THRESHOLD_", "131072"};

// How a remedy changes the program's results.
enum class Effect {
  SameBits,   // none
  Rounding,   // they differ because other kernels or types round differently
  Different,  // the program computes something else
};

// Returns the name in JSON: "bit-equal", "rounding", "different".
const char* name(Effect effect);

// Where a program is tried.
struct Setting {
  bool on_card = false;      // false: on this machine's CPU
  bool has_bfloat16 = true;  // the device computes in bfloat16; cards do from compute capability 8.0 on
  std::string allocator;     // the environment's setting of torch's CUDA allocator: "max_split_size_mb:128"
  bool sets_malloc = false;  // the environment sets malloc's thresholds
};

// An option of a shipped program, as it is written on the command line: "--precision bf16".
struct Option {
  std::string name, value;
};

// One remedy, or several together, for one program.
struct Trial {
  // "half_precision": the id of explain's remedy, if explain has it. A trial of several has their ids, joined by '+'.
  std::string id;
  std::string name;  // for a row: "bf16 autocast"
  Effect effect = Effect::SameBits;
  std::string switches;         // ULLAGE_SWITCHES for switches.py; empty: nothing is switched on inside
  std::string allocator;        // the whole setting of torch's CUDA allocator; empty: as it is
  bool is_plain = false;        // the remedy is kLeanMalloc: under Ullage it has no effect, so it runs without Ullage
  std::vector<Option> options;  // of a shipped program; they replace those on its command line
  std::string if_refused;  // more switches for a second try, if the first ends with an error that is not about memory
  std::string action;      // the lines that a person writes, and the further ones for `if_refused`
  std::string more_action;
  Place place;  // where to write it; may be unknown
};

// Returns the remedies that apply to a program, those that save most in most programs first, because time may run out.
// A remedy that the program uses already is left out.
std::vector<Trial> trials_for(const Facts& facts, const Setting& setting);

// Returns the trial of another value of an option of a shipped program. Its effect is Different. If the program names
// another class when it runs, the row gets that one.
Trial option_trial(const Choice& choice, std::int64_t value);

// Returns one trial with all of `trials`: at least one (else ContractError), no two of the same id, and none with
// `is_plain`, which the result does not have.
Trial together(std::span<const Trial> trials);

// Returns what a person writes for a smaller size: `knob.value` was asked for, `fits` fits and is less. For a batch the
// text names the largest divisor of `knob.value` that is at most `fits`, because the gradients of equal parts add up to
// those of the whole. If no divisor above 1 fits, and for other knobs, the text only names `fits`. A knob counts as a
// batch if its name, which the user chose, has "batch" in it.
std::string smaller_size(const Knob& knob, std::int64_t fits);

// The ids of the whole table, in its order.
std::vector<std::string_view> remedy_ids();

// The text of switches.py. The launcher writes it into a file; libullage_preload.so runs it in each Python of the
// program at the end of `import torch` (ULLAGE_SWITCHES_SCRIPT).
extern const std::string_view kSwitchesScript;

}  // namespace ullage::advise
