// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out what the terminal that an answer goes to can show.

#include "ullage/report/diagnosis_report.h"

#include <functional>

namespace ullage::cli {

using Environment = std::function<const char*(const char* name)>;  // null: not set

// Colors: on a terminal, unless TERM is "dumb" or NO_COLOR is set and not empty (no-color.org). UTF-8: if the first of
// LC_ALL, LC_CTYPE, LANG that is set and not empty names it. Width: the terminal's, else COLUMNS, else 80.
report::TerminalStyle terminal_style(int descriptor, const Environment& environment);

// The same for a given terminal: whether it is one, and how many columns it has (0: not known).
report::TerminalStyle terminal_style(bool terminal, unsigned columns, const Environment& environment);

}  // namespace ullage::cli
