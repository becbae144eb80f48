// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the knobs of `ullage predict`: `--vary batch=2,3,4`, `--at batch=128`, and `{batch}` in the words of a
// command.

#include "ullage/base/knob.h"
#include "ullage/base/result.h"
#include "ullage/predict/law.h"

#include <span>
#include <string>
#include <vector>

namespace ullage::cli {

// If the person names a knob without sizes, its grid is 2, 3, 4: kSizes sizes from kLeastSize on.
inline constexpr std::int64_t kLeastSize = 2;
inline constexpr std::size_t kSizes = 3;

struct Knobs {
  predict::Grid grid;    // the sizes to run
  std::vector<Knob> at;  // the sizes to predict, in the order of the grid's axes
  bool below = false;    // a knob without stated sizes has a target below kLeastSize: the target itself must be run
};

// Reads words such as "batch=128". BadArgument if one is malformed or a knob is named twice.
Result<std::vector<Knob>> read_at(const std::vector<std::string>& at);

// Reads one or two knobs. `vary` has "batch=2,3,4" or just "batch"; `at` has the target of each. BadArgument, which
// says what to do, if a knob is missing from one of the two lists or stands twice in one. BadArgument also if fewer
// than three sizes are stated for it, if the sizes do not rise, or if its target is below them.
Result<Knobs> read_knobs(const std::vector<std::string>& vary, const std::vector<std::string>& at);

// "batch 2", "batch 2, size 64".
std::string in_words(const std::vector<Knob>& knobs);
// "batch=2,3,4;size=32,48,64,80".
std::string as_text(const predict::Grid& grid);

// Returns the knob values of each take of the grid; the last knob varies fastest.
std::vector<std::vector<Knob>> points(const predict::Grid& grid);

// Replaces `{batch}` by its value and `{{batch}}` by the text `{batch}`; leaves other braces alone.
std::string fill(const std::string& word, const std::vector<Knob>& knobs);
std::vector<std::string> fill(const std::vector<std::string>& words, const std::vector<Knob>& knobs);

// BadArgument names the first knob whose placeholder is in none of the words.
Status check_placeholders(const std::vector<std::string>& words, const std::vector<Knob>& knobs);

}  // namespace ullage::cli
