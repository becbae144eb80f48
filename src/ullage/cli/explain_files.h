// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the answers of `ullage explain` to stdout, stderr or a file, and the page and the converted file beside them.

#include "ullage/cli/explain_command.h"
#include "ullage/cli/report_file.h"
#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"
#include "ullage/trace/meaning/levels.h"

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

using Diagnoses = std::vector<diagnose::Diagnosis>;

struct ExplainFiles {
  std::optional<ReportFile> answer, page, converted;  // none: not asked for
};

// Refuses (BadArgument), before any work starts, an output that cannot be written, that is the input itself, or that is
// another output. `input`: the file's name; "-" for standard input; empty if there is none.
Result<ExplainFiles> prepare_explain_files(const ExplainOptions& options, const std::string& input);

// Says why `input` cannot be converted; empty if it can, or if nothing is to be converted.
std::string no_conversion(const ExplainOptions& options, const trace::Input& input);

// Returns the moment that --at names; none if it was not given.
std::optional<trace::At> moment_of(const ExplainOptions& options);

// Writes the answer to the file of --out. Without --out, writes it to `out`. `descriptor` is the one that `out` writes
// to: if it is a terminal, the answer has that terminal's width and colours. Returns the exit code.
int write_answer(const ExplainOptions& options, const ExplainFiles& files, const Diagnoses& diagnoses,
                 const trace::Input& input, std::ostream& out, int descriptor, std::ostream& err);

// Writes the page and the converted file if they were asked for. Calls `before` with the name of each stage when it
// begins. Also calls it with "" before each line that goes to `err`, so that a progress line can be cleared. Returns
// the exit code.
int write_beside(const ExplainOptions& options, const ExplainFiles& files, const Diagnoses& diagnoses,
                 const trace::Input& input, const std::function<void(const std::string&)>& before, std::ostream& err);

}  // namespace ullage::cli
