// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the file of a TARGET. It is either a program that Ullage ships or a command. A shipped program such as `dcgan`
// is the executable ullage-dcgan beside ullage, as git finds its commands. A command is looked up on PATH as a shell
// does.

#include "ullage/base/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ullage::cli {

// Returns the folder of the running executable.
std::filesystem::path own_folder();

// Returns the names of the shipped programs in `folder`, sorted: "dcgan" for an executable file ullage-dcgan.
std::vector<std::string> shipped_programs(const std::filesystem::path& folder);

// Returns whether `word` is the name of a program that is shipped beside this executable.
bool is_shipped_program(const std::string& word);

// Returns libullage_preload.so from `folder`, where ullage is, or from the folder lib beside it; empty if it is in
// neither. BadArgument if its path has a blank or a colon, because these end a name in LD_PRELOAD.
Result<std::filesystem::path> find_preload(const std::filesystem::path& folder);

struct FoundCommand {
  std::filesystem::path file;
  int exit_code = 0;    // 126: it cannot be executed; 127: it is not there
  std::string message;  // when exit_code is not 0
};
// Looks `word` up in `path`, the value of PATH. A word with a slash is taken as a file's path.
FoundCommand find_command(const std::string& word, const std::string& path);

}  // namespace ullage::cli
