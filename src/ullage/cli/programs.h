// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which file a TARGET is: a program that Ullage ships (`dcgan` is the executable ullage-dcgan beside ullage, as git
// finds its commands) or a command of the person's, looked up on PATH as a shell does.

#include "ullage/base/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ullage::cli {

// The folder of the running executable.
std::filesystem::path own_folder();

// Names of the shipped programs in `folder`, sorted: "dcgan" for an executable file ullage-dcgan.
std::vector<std::string> shipped_programs(const std::filesystem::path& folder);

// libullage_preload.so beside ullage in `folder` or in the folder lib beside that; empty where there is none.
// BadArgument where its path cannot stand in LD_PRELOAD, whose names end at a blank or a colon.
Result<std::filesystem::path> find_preload(const std::filesystem::path& folder);

struct FoundCommand {
  std::filesystem::path file;
  int exit_code = 0;    // 126: there, but not to be executed; 127: not there
  std::string message;  // when exit_code is not 0
};
// `path` is the value of PATH. A word with a slash is a file of its own.
FoundCommand find_command(const std::string& word, const std::string& path);

}  // namespace ullage::cli
