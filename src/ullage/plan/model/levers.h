// SPDX-License-Identifier: Apache-2.0
#pragma once

// The levers: what a plan may do with a step. Options, output and docs all use this table;
// tests/plan/model/levers_test.cpp compares docs/plan.md and docs/cli.md with it.

#include <array>
#include <string>
#include <string_view>

namespace ullage::plan {

// The levers that a plan may use. The initial values are the defaults.
struct Levers {
  bool recompute = true;   // allows Action::What::Recompute
  bool batch_norm = true;  // allows Action::What::BatchNorm
  bool hold = true;        // allows Action::What::Hold
  bool spill = true;       // spill activations
  bool state = true;       // spill what lives from step to step: optimizer state, gradients, parameters
};

inline constexpr Levers kNoLevers{
    .recompute = false, .batch_norm = false, .hold = false, .spill = false, .state = false};

struct Lever {
  // How the program's results compare with those of the plain program. A plan has bit-equal levers alone; the other
  // classes are those of recordings that `ullage plan --allow` compares (trace::ResultChange).
  enum class Results { BitEqual, Rounding, Different };

  bool Levers::*on;  // the member that turns it on
  const char* word;  // in options, in plan files and in all output
  Results results;
  bool by_default;
};

inline constexpr std::array<Lever, 5> kLevers = {{
    {&Levers::recompute, "recompute", Lever::Results::BitEqual, Levers{}.recompute},
    {&Levers::batch_norm, "batch-norm", Lever::Results::BitEqual, Levers{}.batch_norm},
    {&Levers::hold, "hold", Lever::Results::BitEqual, Levers{}.hold},
    {&Levers::spill, "spill", Lever::Results::BitEqual, Levers{}.spill},
    {&Levers::state, "state", Lever::Results::BitEqual, Levers{}.state},
}};

constexpr const char* word_of(bool Levers::*on) {
  for (const Lever& lever : kLevers) {
    if (lever.on == on) return lever.word;
  }
  return "";  // not reached: levers_test.cpp looks up every lever
}

constexpr const char* word_of(Lever::Results results) {
  switch (results) {
    case Lever::Results::BitEqual:
      return "bit-equal";
    case Lever::Results::Rounding:
      return "rounding";
    case Lever::Results::Different:
      return "different";
  }
  return "";
}

// An exact plan that adds at most this share to a step's time is kept. Ways that change results are then not looked at,
// even if they are allowed.
inline constexpr double kLittleTime = 0.05;

// Turns a lever on by its word. Returns false if no lever has that word.
constexpr bool turn_on(std::string_view word, Levers& levers) {
  for (const Lever& lever : kLevers) {
    if (lever.word == word) return levers.*lever.on = true;
  }
  return false;
}

// The words of the default levers: "recompute, batch-norm, ...".
inline std::string lever_words() {
  std::string words;
  for (const Lever& lever : kLevers) {
    if (lever.by_default) words += (words.empty() ? "" : ", ") + std::string(lever.word);
  }
  return words;
}

}  // namespace ullage::plan
