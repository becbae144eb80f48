// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text as CLIP's tokeniser takes it: cleaned, in lower case, in words. Unicode's classes, cases and forms are ICU's.

#include "ullage/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::vqgan_clip {

// References of HTML resolved, curly quotes made straight, ligatures of Latin and characters of full and half width as
// ordinary letters, control characters gone, composed (NFC), white space one blank, lower case: what CLIP has ftfy,
// html and str do. Two things of ftfy are not done: characters that were decoded wrongly (UTF-8 as Latin-1) stay as
// they are, and escape sequences of terminals lose no more than their first character. BadArgument: no UTF-8.
Result<std::string> clean_text(std::string_view text);

// Of cleaned text: runs of letters, single figures, runs of other characters, endings like 's, and the two marks
// "<|startoftext|>" and "<|endoftext|>". The views lie in the text.
std::vector<std::string_view> words_of(std::string_view cleaned);

}  // namespace ullage::vqgan_clip
