// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage run --allow WORDS`: which changes of its results a person allows for a program, and how they are made from
// outside. To allow more, add a word here and a switch in advise/switches.py.

#include "ullage/base/result.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/plan_comparison.h"

#include <string>
#include <vector>

namespace ullage::cli {

struct Allowance {
  bool bf16 = false;        // forward passes under bf16 autocast
  bool evaluation = false;  // also passes that no backward pass follows
  bool if_needed = false;   // only while no cheap exact plan fits (runtime/plan/cast_choice.h)
  bool rounding = false;    // whatever changes results so, if it is needed
  bool different = false;

  AllowedClasses classes() const { return {rounding, different}; }
  bool names_classes() const { return rounding || different; }
  // As the option has them: "bf16", "evaluation", "if-needed", "rounding", "different".
  std::vector<std::string> words() const;
  // Returns the words for switches.py. `device`, "cpu" or "cuda": only networks on it are cast.
  std::string switches(const std::string& device) const;
};

// Reads the value of --allow: words with commas between. "evaluation" and "if-needed" need "bf16", and may stand
// together. Classes stand without these three. BadArgument names what is allowed.
Result<Allowance> parse_allowance(const std::string& text);

// Says what the classes mean for a Python program: "rounding" is "bf16,if-needed". BadArgument if only "different" is
// allowed, because no change from outside is of that class. Changes nothing if the allowance names no class.
Result<Allowance> for_python(Allowance allowance);

// Refuses shipped programs and programs linked to torch, because switches work in Python alone. Lets all others pass,
// such as shell scripts, because they may start Python. `target` as in find_target().
Status takes_switches(const Launch& program, const std::vector<std::string>& target);

}  // namespace ullage::cli
