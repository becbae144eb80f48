// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a verb that runs programs was given to run: a shipped program with its words, or "--" and a command.

#include "ullage/cli/launcher.h"

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace ullage::cli {

// A line on stderr and the exit code that goes with it.
struct Refusal {
  int exit_code = 2;
  std::string message;
};
// Says it, and where help is ("ullage help <verb>") where the use was wrong. Returns the exit code.
int refuse(const Refusal& refusal, const std::string& verb, std::ostream& err);
Refusal not_started(const Launch& launch, int reason);

// "programs here: dcgan", or that there are none.
std::string programs_here();

// Where commands are looked up: PATH, or what a shell takes without it.
std::string search_path();

// `target`: first a shipped program's name, or "--" and then a command. No library is preloaded yet.
std::variant<Launch, Refusal> find_target(const std::vector<std::string>& target, const std::string& verb);

// The library to preload; "" with a warning where its path cannot be preloaded.
std::string preload_of(std::ostream& err);

}  // namespace ullage::cli
