// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the picture is to look like: the grammar of prompts.
//
//   text:weight:stop|text:weight:stop ^ text ...
//
// '|' separates prompts that hold at once, '^' the phrases of a story, one after the other. Weight and stop are what
// stands behind the last two colons: a text with colons of its own must have both. A weight below zero leads away from
// the text; the loss of a prompt is not pushed below its stop.

#include "ullage/base/result.h"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::vqgan_clip {

struct Prompt {
  std::string text;  // of an image prompt: its path
  double weight = 1;
  double stop = -std::numeric_limits<double>::infinity();

  friend bool operator==(const Prompt&, const Prompt&) = default;
};

using Phrase = std::vector<Prompt>;

// As a person would write it: weight and stop only where they must stand. parse_story() makes the same of it.
std::string to_string(const Phrase& phrase);

// One phrase at least, each with one prompt at least; white space around texts is gone. BadArgument names the prompt
// that is empty, or whose weight or stop is no number.
Result<std::vector<Phrase>> parse_story(std::string_view text);

// The same without '^', which may be in a path.
Result<Phrase> parse_image_prompts(std::string_view text);

}  // namespace ullage::vqgan_clip
