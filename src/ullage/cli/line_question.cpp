// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/line_question.h"

#include "ullage/store/process_memory.h"

#include <signal.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
using Place = report::DryReport::Place;

bool catches(std::int32_t pid, int signal) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    const std::uint64_t caught = std::strtoull(line.c_str() + line.find_first_not_of(": \t", 7), nullptr, 16);
    return (caught >> (signal - 1) & 1) != 0;
  }
  return false;
}

// A child by fork answers into the file of its parent, whose open file it has.
fs::path file_of(std::int32_t pid, const fs::path& answers) {
  std::error_code ignored;
  for (; pid > 0; pid = store::parent_of(pid)) {
    fs::path file = answers / (std::to_string(pid) + ".lines");
    if (fs::exists(file, ignored)) return file;
  }
  return {};
}

// Parses `  File "train.py", line 12 in main`. The file is empty if the line is another one.
Place place_in(std::string_view line) {
  constexpr std::string_view kBegin = "  File \"", kNumber = "\", line ", kFunction = " in ";
  const std::size_t end = line.rfind(kNumber);
  if (!line.starts_with(kBegin) || end == line.npos) return {};
  Place place;
  place.file = line.substr(kBegin.size(), end - kBegin.size());
  line.remove_prefix(end + kNumber.size());
  std::from_chars(line.data(), line.data() + line.size(), place.line);
  if (const std::size_t in = line.find(kFunction); in != line.npos) place.function = line.substr(in + kFunction.size());
  return place;
}

}  // namespace

int line_signal() { return SIGRTMAX - 2; }

LineQuestion::LineQuestion(std::int32_t pid, const fs::path& answers) {
  if (!catches(pid, line_signal())) return;  // the file has its first line by the time that it does
  const fs::path file = file_of(pid, answers);
  std::error_code failed;
  before_ = fs::file_size(file, failed);
  if (failed || ::kill(pid, line_signal()) != 0) return;
  file_ = file;
}

std::optional<Place> LineQuestion::answer() {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(file_, failed);
  if (failed || std::exchange(seen_, size) != size) return std::nullopt;  // the handler writes in small pieces
  std::ifstream in(file_);
  std::string standard, line;
  std::getline(in, standard);  // the folder of Python's own modules
  in.seekg(static_cast<std::streamoff>(before_));
  Place nearest;
  bool has_answer = false;
  while (std::getline(in, line)) {
    has_answer = true;
    Place place = place_in(line);
    if (place.file.empty() || place.file.starts_with('<')) continue;
    if (nearest.file.empty()) nearest = place;
    if (place.file.find("-packages") == std::string::npos && !place.file.starts_with(standard)) return place;
  }
  return has_answer ? std::optional(nearest) : std::nullopt;
}

}  // namespace ullage::cli
