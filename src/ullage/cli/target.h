// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds what a verb is to run: a shipped program with its arguments, or "--" and a command.

#include "ullage/cli/launcher.h"

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace ullage::cli {

// Why something was refused: a line for stderr, and the exit code.
struct Refusal {
  int exit_code = 2;
  std::string message;
};
// Writes the refusal to `err`; for wrong use also where to find help ("ullage help <verb>"). Returns its exit code.
int refuse(const Refusal& refusal, const std::string& verb, std::ostream& err);
// `reason` is the errno with which the start failed. Exit code 127 if the file is not there, else 126.
Refusal not_started(const Launch& launch, int reason);

// Returns "programs here: dcgan", or that there are none.
std::string programs_here();

// Returns where commands are looked up: PATH, or a shell's default if PATH is not set.
std::string search_path();

// Finds the executable. `target` is a shipped program's name or "--" and a command, each with arguments. `verb` is for
// messages. Leaves Launch::preload empty.
std::variant<Launch, Refusal> find_target(const std::vector<std::string>& target, const std::string& verb);

// Returns the path of the library to preload; "" if there is none. If its path cannot be preloaded, also returns "",
// and writes a warning to `err`.
std::string preload_of(std::ostream& err);

}  // namespace ullage::cli
