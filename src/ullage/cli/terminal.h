// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the place that an answer goes to can show.

#include "ullage/report/diagnosis_report.h"

#include <functional>

namespace ullage::cli {

using Environment = std::function<const char*(const char* name)>;  // null: not set

// Colors only on a terminal that is not "dumb" and without NO_COLOR (set to anything but nothing: no-color.org); UTF-8
// where the first of LC_ALL, LC_CTYPE, LANG that is set says so; the terminal's width, else COLUMNS, else 80.
report::TerminalStyle terminal_style(int descriptor, const Environment& environment);

// As above, told whether it is a terminal and how wide (0: not known).
report::TerminalStyle terminal_style(bool terminal, unsigned columns, const Environment& environment);

}  // namespace ullage::cli
