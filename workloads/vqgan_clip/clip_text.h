// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares text as CLIP's tokeniser does: cleans it, lowers its case and splits it into words. Character classes, cases
// and normal forms come from ICU.

#include "ullage/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::vqgan_clip {

// Does what CLIP does with ftfy, html and str. Resolves HTML references, and makes curly quotes straight. Turns Latin
// ligatures and full and half width characters into ordinary letters, and removes control characters. Composes (NFC),
// makes white space one blank, and lowers the case. Two parts of ftfy are missing: wrongly decoded characters (UTF-8 as
// Latin-1) are not repaired, and terminal escape sequences lose only their first character. BadArgument if the text is
// not UTF-8.
Result<std::string> clean_text(std::string_view text);

// Splits cleaned text into runs of letters, single digits, runs of other characters, endings like 's, and the two marks
// "<|startoftext|>" and "<|endoftext|>". The views point into `cleaned`.
std::vector<std::string_view> words_of(std::string_view cleaned);

}  // namespace ullage::vqgan_clip
