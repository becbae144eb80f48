// SPDX-License-Identifier: Apache-2.0
#pragma once

// The levers: what a plan may do with a step. One table for options, answers and docs (tests/plan/model/levers_test.cpp
// holds docs/plan.md and docs/cli.md to it).

#include <array>
#include <string>
#include <string_view>

namespace ullage::plan {

// Which may be used. As it is made: those that are used unless somebody says otherwise.
struct Levers {
  bool recompute = true;   // Recompute
  bool batch_norm = true;  // BatchNorm
  bool hold = true;
  bool spill = true;  // activations
  bool state = true;  // spill what lives from step to step: optimizer state, gradients, parameters
};

inline constexpr Levers kNoLevers{
    .recompute = false, .batch_norm = false, .hold = false, .spill = false, .state = false};

struct Lever {
  // What a program's results are under it.
  enum class Results { BitEqual };

  bool Levers::*on;  // which it is
  const char* word;  // in options, in plans and in all that people read
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
  return "";  // unreached: levers_test.cpp finds each
}

constexpr const char* word_of(Lever::Results results) {
  switch (results) {
    case Lever::Results::BitEqual:
      return "bit-equal";
  }
  return "";
}

// Turns a lever on by its word. False: there is none of that word.
constexpr bool turn_on(std::string_view word, Levers& levers) {
  for (const Lever& lever : kLevers) {
    if (lever.word == word) return levers.*lever.on = true;
  }
  return false;
}

// "recompute, batch-norm, ...": those that are used by default.
inline std::string lever_words() {
  std::string words;
  for (const Lever& lever : kLevers) {
    if (lever.by_default) words += (words.empty() ? "" : ", ") + std::string(lever.word);
  }
  return words;
}

}  // namespace ullage::plan
