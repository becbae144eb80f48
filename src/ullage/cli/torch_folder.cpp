// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/torch_folder.h"

#include "ullage/cli/programs.h"
#include "ullage/cli/target.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

bool is_python(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("python") || name.starts_with("pypy");
}

// Returns the file of the Python that a script names in its first line, such as "#!/usr/bin/env python3".
std::optional<fs::path> python_of_script(const fs::path& script) {
  std::ifstream in(script, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("#!")) return std::nullopt;
  std::istringstream words(line.substr(2));
  for (std::string word; words >> word;) {
    if (!is_python(word)) continue;
    const FoundCommand found = find_command(word, search_path());
    if (found.exit_code == 0) return found.file;
  }
  return std::nullopt;
}

// Returns the Python that a command starts, if the command is no Python itself: "nice python3 train.py". Only a word
// that is a Python's plain name or path counts, such as "python3.11". Other words may name a script.
std::optional<fs::path> python_among(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string name = fs::path(words[i]).filename().string();
    if (!name.starts_with("python") || name.find_first_not_of("0123456789.t", 6) != std::string::npos) continue;
    const FoundCommand found = find_command(words[i], search_path());
    if (found.exit_code == 0) return found.file;
  }
  return std::nullopt;
}

// Returns what `python` prints when it runs `text`; empty if it fails.
std::string said_by(const fs::path& python, const char* text) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::close(ends[0]), ::close(ends[1]);
    ::execl(python.c_str(), python.c_str(), "-c", text, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> some{};
  for (ssize_t n = 0; child > 0 && (n = ::read(ends[0], some.data(), some.size())) > 0;)
    said.append(some.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0 || status != 0) return {};
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

// Prints torch's folder, then the folders of packages on the search path. Debian calls these dist-packages.
constexpr const char* kAsk =
    "import importlib.util as u, os, sys\n"
    "s = u.find_spec('torch')\n"
    "print(list(s.submodule_search_locations)[0] if s and s.submodule_search_locations else '')\n"
    "print(*{os.path.realpath(p): 0 for p in sys.path if p.endswith('-packages') and os.path.isdir(p)}, sep='\\n')";

Result<TorchFound> torch_in(const fs::path& lib, const fs::path& python) {
  std::error_code ignored;
  if (!fs::exists(lib / "libtorch_cpu.so", ignored)) {
    return Error{Error::Kind::NotFound, "no libtorch_cpu.so there: this is not a known build of torch", lib.string()};
  }
  return TorchFound{lib, python, fs::exists(lib / "libtorch_cuda.so", ignored)};
}

}  // namespace

Result<TorchFound> find_torch(const Launch& launch) {
  std::optional<fs::path> python;
  if (is_python(launch.file)) python = launch.file;
  if (!python) python = python_of_script(launch.file);
  if (!python) python = python_among(launch.words);
  if (!python) {
    const FoundCommand found = find_command("python3", search_path());
    if (found.exit_code == 0) python = found.file;
  }
  if (!python) {
    return Error{Error::Kind::NotFound, "is not Python, names no Python in its first line, and no python3 is on PATH",
                 launch.file.string()};
  }
  std::istringstream said(said_by(*python, kAsk));
  std::string package;
  if (!std::getline(said, package) || package.empty()) {
    return Error{Error::Kind::NotFound, "has no torch", python->string()};
  }
  ULLAGE_TRY_VALUE(TorchFound found, torch_in(fs::path(package) / "lib", *python));
  for (std::string folder; std::getline(said, folder);) {
    if (!folder.empty()) found.packages.emplace_back(folder);
  }
  return found;
}

}  // namespace ullage::cli
