// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/programs.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "ullage-";

enum class Kind { Absent, Folder, Locked, Executable };

Kind kind_of(const fs::path& file) {
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  if (!fs::exists(status))
    return failed && failed != std::errc::no_such_file_or_directory && failed != std::errc::not_a_directory
               ? Kind::Locked
               : Kind::Absent;
  if (fs::is_directory(status)) return Kind::Folder;
  return ::access(file.c_str(), X_OK) == 0 ? Kind::Executable : Kind::Locked;
}

FoundCommand judge(const fs::path& file, Kind kind, const std::string& word) {
  switch (kind) {
    case Kind::Executable:
      return {file, 0, ""};
    case Kind::Folder:
      return {file, 126, file.string() + ": is a folder, not a command"};
    case Kind::Locked:
      return {file, 126, file.string() + ": may not be executed; chmod +x makes a script a command"};
    case Kind::Absent:
      break;
  }
  return {file, 127, word + ": no such command"};
}

}  // namespace

fs::path own_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::vector<std::string> shipped_programs(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.size() > kPrefix.size() && name.starts_with(kPrefix) && name.find('.') == std::string::npos &&
        kind_of(entry->path()) == Kind::Executable) {
      names.push_back(name.substr(kPrefix.size()));
    }
    if (ignored) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_shipped_program(const std::string& word) {
  const std::vector<std::string> names = shipped_programs(own_folder());
  return std::find(names.begin(), names.end(), word) != names.end();
}

Result<fs::path> find_preload(const fs::path& folder) {
  for (const fs::path& place : {folder, folder.parent_path() / "lib"}) {
    const fs::path file = place / "libullage_preload.so";
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) continue;
    if (file.string().find_first_of(" :") == std::string::npos) return file;
    return Error{Error::Kind::BadArgument,
                 "a path with a blank or a colon cannot be preloaded: programs that are not linked to Ullage's runtime "
                 "run without a budget",
                 file.string()};
  }
  return fs::path();
}

FoundCommand find_command(const std::string& word, const std::string& path) {
  if (word.find('/') != std::string::npos) return judge(word, kind_of(word), word);
  FoundCommand best = {word, 127, "'" + word + "': no such command on PATH"};
  if (word.empty()) return best;
  std::string_view rest = path;
  for (;;) {
    const std::size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    const fs::path file =
        (folder.empty() ? fs::path(".") : fs::path(folder)) / word;  // an empty part is the working folder
    const Kind kind = kind_of(file);
    if (kind == Kind::Executable) return judge(file, kind, word);
    // Keeps the first file that cannot be executed as the answer, in case no later folder has one that can. A folder of
    // that name is skipped.
    if (kind == Kind::Locked && best.exit_code == 127) best = judge(file, kind, word);
    if (colon == std::string_view::npos) return best;
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace ullage::cli
