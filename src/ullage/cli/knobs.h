// SPDX-License-Identifier: Apache-2.0
#pragma once

// The knobs of `ullage predict`: `--vary batch=2,3,4`, `--at batch=128`, and `{batch}` in the words of a command.

#include "ullage/base/knob.h"
#include "ullage/base/result.h"
#include "ullage/predict/law.h"

#include <span>
#include <string>
#include <vector>

namespace ullage::cli {

// What a grid is when the person names a knob alone.
inline constexpr std::int64_t kLeastSize = 2;
inline constexpr std::size_t kSizes = 3;

struct Knobs {
  predict::Grid grid;    // the sizes to run
  std::vector<Knob> at;  // the target, in the order of the grid's axes
  bool below = false;    // sizes were not stated and the target is below all that Ullage would choose
};

// "batch=128".
Result<std::vector<Knob>> read_at(const std::vector<std::string>& at);

// `vary`: "batch=2,3,4" or "batch", one or two. BadArgument says what is wrong and what to do: one without the other, a
// name twice, fewer than three values, values that do not rise, a target below them.
Result<Knobs> read_knobs(const std::vector<std::string>& vary, const std::vector<std::string>& at);

// "batch 2", "batch 2, size 64".
std::string in_words(const std::vector<Knob>& knobs);
// "batch=2,3,4;size=32,48,64,80".
std::string as_text(const predict::Grid& grid);

// The values of each take of the grid, the last knob fastest.
std::vector<std::vector<Knob>> points(const predict::Grid& grid);

// `{batch}` becomes its value; `{{batch}}` stands for the text `{batch}`; other braces stay.
std::string fill(const std::string& word, const std::vector<Knob>& knobs);
std::vector<std::string> fill(const std::vector<std::string>& words, const std::vector<Knob>& knobs);

// BadArgument names a knob whose placeholder is in no word.
Status check_placeholders(const std::vector<std::string>& words, const std::vector<Knob>& knobs);

}  // namespace ullage::cli
