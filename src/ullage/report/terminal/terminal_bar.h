// SPDX-License-Identifier: Apache-2.0
#pragma once

// The device as one bar of characters with its legend.
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

// How many of `cells` each part gets: in proportion, at least one where a part is not zero, in all exactly `cells` (or
// one for each part where there are more parts than cells). No parts, or a total of zero: all zero.
std::vector<std::size_t> bar_cells(const std::vector<Bytes>& parts, std::size_t cells);

// The lines of the bar and, two abreast where the width allows, of its legend.
std::vector<std::string> bar_lines(const diagnose::Bar& bar, const TerminalStyle& style);

// Per cent, rounded; "<1 %" of what is not nothing, "100 %" only of all.
std::string share(Bytes part, Bytes whole);

// Where the style has colors; else as it is.
std::string bold(const std::string& text, const TerminalStyle& style);

}  // namespace ullage::report
