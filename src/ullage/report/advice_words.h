// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts of an Advice that the terminal and the HTML page both show. They may contain text from files and programs, so
// escape them before output.

#include "ullage/advise/advice.h"

#include <string>

namespace ullage::report {

// "needs 15.00 GiB of the 11.62 GiB of NVIDIA GeForce RTX 3060".
std::string headline(const advise::Advice& advice);

// The cells of a table row. fits: "yes", "no", "may" (it fits, but that is only computed), "?" (not known). peak:
// "10.43 GiB", "~10.43 GiB" (computed), "-" (not known). time: "+18 %", "-". result: "same bits", "rounding",
// "different". place: "train.py:305". The last two are empty if not known.
std::string fits_word(const advise::Row& row);
std::string peak_word(const advise::Row& row);
std::string time_word(const advise::Row& row);
std::string result_word(const advise::Row& row);
std::string place_word(const advise::Row& row);

// Says how many bytes the row's program takes without Ullage, and whether these fit `memory`. Empty if not known.
std::string plainly_words(const advise::Row& row, Bytes memory);

}  // namespace ullage::report
