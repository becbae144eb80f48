// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words of an Advice that the terminal and the page share. All of them are untrusted.

#include "ullage/advise/advice.h"

#include <string>

namespace ullage::report {

// "needs 15.00 GiB of the 11.62 GiB of NVIDIA GeForce RTX 3060".
std::string headline(const advise::Advice& advice);

// The cells of a row: "yes", "10.43 GiB" ("~" before a computed one), "+18 %", "same bits", "train.py:305". A figure
// that is not known is "-", another cell "".
std::string fits_word(const advise::Row& row);
std::string peak_word(const advise::Row& row);
std::string time_word(const advise::Row& row);
std::string result_word(const advise::Row& row);
std::string place_word(const advise::Row& row);

// What the row takes without Ullage, and whether that fits `memory`. Empty: not known.
std::string plainly_words(const advise::Row& row, Bytes memory);

}  // namespace ullage::report
