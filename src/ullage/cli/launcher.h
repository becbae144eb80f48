// SPDX-License-Identifier: Apache-2.0
#pragma once

// Starts a program as a child with the ledger in its environment, and waits for its end. The launcher stays the parent,
// so that it can report what happened even if the kernel killed the program.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/signals.h"
#include "ullage/report/run_report.h"
#include "ullage/store/ledger.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::cli {

// For Launch::environment: torch's compiler is imported once the program asks for it, and not by its optimizers
// (preload/defer_compiler.py).
inline const std::pair<std::string, std::string> kDeferCompiler{"ULLAGE_DEFER_COMPILER", "1"};

struct Launch {
  std::filesystem::path file;                                    // the executable
  std::vector<std::string> words;                                // its argv, argv[0] included
  MachineRoots roots;                                            // where kills for lack of memory are counted
  std::string preload;                                           // for LD_PRELOAD, before what is there; empty: nothing
  std::vector<std::pair<std::string, std::string>> environment;  // added to what it inherits
  std::filesystem::path folder;                                  // where it runs, `file` must be absolute; empty: here
  std::filesystem::path outputs;  // its stdout and stderr are appended there, its stdin is empty; empty: it has ours
  int out = -1, err = -1;         // descriptors that become its stdout and stderr; -1: it has ours
  bool has_ledger = true;         // false: no ledger, so no runtime unless a run is around us; all its processes count
  std::optional<std::chrono::steady_clock::time_point> deadline;  // all its processes are killed then; none: never
  // Asked every 10 ms with the child's process id. If it returns true, all its processes are killed. May be empty.
  std::function<bool(std::int32_t)> is_to_end;
  std::function<void()> on_start;  // called once the program runs, before it is waited for; may be empty
};

// The program could not be started. `reason` is an errno.
struct NotStarted {
  int reason = 0;
};

// The child stays in this process group, so job control and Ctrl-C work as without Ullage. It gets SIGTERM if this
// process dies first. While it runs, its whole process tree is counted into the ledger. Fills in command, exit_code,
// signal, peak, wall, out_of_time and oom_kills of ProcessEnd.
std::variant<report::ProcessEnd, NotStarted> launch(const Launch& launch, store::Ledger& ledger,
                                                    SignalForwarder& signals);

}  // namespace ullage::cli
