// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/target.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/programs.h"
#include "ullage/cli/words.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ostream>

namespace ullage::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::variant<Launch, Refusal> command_of(const std::vector<std::string>& target) {
  const std::vector<std::string> words(target.begin() + 1, target.end());
  if (words.empty()) return Refusal{to_int(ExitCode::WrongUse), "no command after '--'"};
  const FoundCommand found = find_command(words.front(), search_path());
  if (found.exit_code != 0) return Refusal{found.exit_code, found.message};
  Launch launch;
  launch.file = found.file;
  launch.words = words;
  return launch;
}

std::variant<Launch, Refusal> shipped_program_of(const std::vector<std::string>& target, const std::string& verb) {
  const std::string& name = target.front();
  const std::filesystem::path file = own_folder() / ("ullage-" + name);
  if (name.find('/') == std::string::npos && find_command(file.string(), "").exit_code == 0) {
    Launch launch;
    launch.file = file;
    launch.words = target;
    launch.words.front() = "ullage-" + name;
    return launch;
  }
  std::string message = "unknown program '" + name + "'" + suggestion(name, shipped_programs(own_folder())) + " (" +
                        programs_here() + ")";
  if (find_command(name, search_path()).exit_code == 0)
    message += "; for the command of that name write: ullage " + verb + " -- " + name;
  return Refusal{to_int(ExitCode::WrongUse), message};
}

}  // namespace

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
}

int refuse(const Refusal& refusal, const std::string& verb, std::ostream& err) {
  err << "ullage: " << refusal.message << '\n';
  if (refusal.exit_code == to_int(ExitCode::WrongUse)) err << "ullage: see 'ullage help " << verb << "'\n";
  return refusal.exit_code;
}

Refusal not_started(const Launch& launch, int reason) {
  return {reason == ENOENT ? 127 : 126, launch.file.string() + ": cannot be started: " + std::strerror(reason)};
}

std::string programs_here() {
  const std::vector<std::string> names = shipped_programs(own_folder());
  return names.empty() ? "no programs stand beside ullage" : "programs here: " + joined(names);
}

std::variant<Launch, Refusal> find_target(const std::vector<std::string>& target, const std::string& verb) {
  if (target.empty()) {
    return Refusal{to_int(ExitCode::WrongUse),
                   "nothing to " + verb + ": name a program, or write '--' and a command (" + programs_here() + ")"};
  }
  return target.front() == "--" ? command_of(target) : shipped_program_of(target, verb);
}

std::string preload_of(std::ostream& err) {
  const Result<std::filesystem::path> library = find_preload(own_folder());
  if (library) return library->string();
  err << "ullage: warning: " << library.error().text() << '\n';
  return "";
}

}  // namespace ullage::cli
