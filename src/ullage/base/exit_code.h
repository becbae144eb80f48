// SPDX-License-Identifier: Apache-2.0
#pragma once

// The exit codes that Ullage's commands give themselves. Scripts rely on them, and docs/cli.md documents them. If the
// command that it ran has ended, `ullage run` mostly gives the code of that command instead.

namespace ullage {

enum class ExitCode : int {
  Done = 0,
  Failed = 1,        // for any reason not listed below
  WrongUse = 2,      // an unknown or invalid option, value or verb
  BadInput = 3,      // an input file cannot be read, or is damaged or of another kind
  Infeasible = 4,    // the budget cannot be met
  Interrupted = 130  // 128 + SIGINT
};

constexpr int to_int(ExitCode code) { return static_cast<int>(code); }

}  // namespace ullage
