// SPDX-License-Identifier: Apache-2.0
#pragma once

// How every command of Ullage ends. A contract with scripts: docs/cli.md.

namespace ullage {

enum class ExitCode : int {
  Done = 0,
  Failed = 1,        // for another reason than those below
  WrongUse = 2,      // an option, a value, a verb
  BadInput = 3,      // an input file cannot be read, or is not what it says
  Infeasible = 4,    // the budget cannot be met
  Interrupted = 130  // 128 + SIGINT
};

constexpr int to_int(ExitCode code) { return static_cast<int>(code); }

}  // namespace ullage
