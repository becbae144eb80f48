// SPDX-License-Identifier: Apache-2.0
#pragma once

// Starts a program as a child with the ledger in its environment and waits for its end. The launcher stays the parent,
// so that there is someone to tell what happened, even when the kernel killed the program.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/signals.h"
#include "ullage/report/run_report.h"
#include "ullage/store/ledger.h"

#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::cli {

struct Launch {
  std::filesystem::path file;      // what is executed
  std::vector<std::string> words;  // its argv, the first included
  MachineRoots roots;              // where out-of-memory kills are counted
  std::string preload;             // a library for LD_PRELOAD, in front of what is there; empty: none
  std::vector<std::pair<std::string, std::string>> environment;  // set for it, beside what is there
  std::filesystem::path folder;                                  // where it runs, then `file` is absolute; empty: here
  std::filesystem::path outputs;  // a file for its stdout and stderr, and its stdin is empty; else they are ours
};

// The program could not be started; `reason` is an errno.
struct NotStarted {
  int reason = 0;
};

// The child stays in this process group (job control and Ctrl-C work as without Ullage) and gets SIGTERM should this
// process die before it. While it runs its whole tree is counted into the ledger. Fills command, exit_code, signal,
// peak, wall and oom_kills of ProcessEnd.
std::variant<report::ProcessEnd, NotStarted> launch(const Launch& launch, store::Ledger& ledger,
                                                    SignalForwarder& signals);

}  // namespace ullage::cli
