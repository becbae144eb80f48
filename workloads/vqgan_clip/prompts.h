// SPDX-License-Identifier: Apache-2.0
#pragma once

// The grammar of prompts, which say what the picture is to look like.
//
//   text:weight:stop|text:weight:stop ^ text ...
//
// '|' separates prompts that hold at the same time, '^' the phrases of a story, which follow each other. Weight and
// stop are the parts behind the last two colons, so a text that contains colons must have both. A weight below zero
// leads away from the text. The loss of a prompt is not pushed below its stop.

#include "ullage/base/result.h"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::vqgan_clip {

struct Prompt {
  std::string text;  // for an image prompt, its path
  double weight = 1;
  double stop = -std::numeric_limits<double>::infinity();

  friend bool operator==(const Prompt&, const Prompt&) = default;
};

using Phrase = std::vector<Prompt>;

// Writes the phrase as a person would, with weight and stop only if they are needed. parse_story() reads the same
// phrase back.
std::string to_string(const Phrase& phrase);

// Returns at least one phrase, each with at least one prompt, without white space around texts. BadArgument names the
// prompt that is empty, or whose weight or stop is no number.
Result<std::vector<Phrase>> parse_story(std::string_view text);

// Parses one phrase; '^' is not special, because a path may contain it.
Result<Phrase> parse_image_prompts(std::string_view text);

}  // namespace ullage::vqgan_clip
