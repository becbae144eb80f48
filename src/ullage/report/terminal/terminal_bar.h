// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws a device's memory as one bar of characters, with its legend.
//
//   GPU 0, 8.00 GiB
//   [AAAAAAAAAAAAAAAAAAPPPPPPPOOOO++++++++xxxxx########...................]
//    A activations   2.10 GiB  26 %    + cached and usable   1.00 GiB  12 %

#include "ullage/diagnose/diagnosis.h"
#include "ullage/report/diagnosis_report.h"

#include <cstddef>
#include <string>
#include <vector>

namespace ullage::report {

// Returns how many of `cells` each part gets: in proportion, and at least one if the part is not zero. They add up to
// `cells`, or to the number of such parts if that is more. All are zero if there are no such parts.
std::vector<std::size_t> bar_cells(const std::vector<Bytes>& parts, std::size_t cells);

// Returns the lines of the bar and of its legend, which has two columns from a width of 76 on.
std::vector<std::string> bar_lines(const diagnose::Bar& bar, const TerminalStyle& style);

// Returns rounded percent: "<1 %" for less than 1 but not zero, "100 %" only for everything, "-" if `whole` is zero.
std::string share(Bytes part, Bytes whole);

// Returns the text in bold if the style has colors, else unchanged.
std::string bold(const std::string& text, const TerminalStyle& style);

}  // namespace ullage::report
