// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks a Python process of a dry run which line of the program its main thread is at. A signal asks, and Python's
// faulthandler answers into a file (drycard/in_python.py). That handler needs no lock of Python's, so it answers also
// while C++ code holds the lock for long, as it does to load a file.

#include "ullage/report/dry_report.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ullage::cli {

// The signal. Its number goes to the program in ULLAGE_DRYCARD_LINE_SIGNAL.
int line_signal();

class LineQuestion final {
 public:
  // Sends the signal, unless the process does not catch it: it is no Python, or has not imported torch. `answers`: the
  // folder of the answers, one file for each process, PID.lines.
  LineQuestion(std::int32_t pid, const std::filesystem::path& answers);

  bool was_asked() const { return !file_.empty(); }
  // Returns the program's own line that is nearest to what runs; if there is none, the nearest line of a library. Its
  // file is empty if no Python code runs. Nothing: there is no answer yet, or it grew since the last call and may not
  // be whole.
  std::optional<report::DryReport::Place> answer();

 private:
  std::filesystem::path file_;
  std::uintmax_t before_ = 0;  // bytes of earlier answers in the file
  std::uintmax_t seen_ = 0;    // bytes in the file at the last call of answer()
};

}  // namespace ullage::cli
