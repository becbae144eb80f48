// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the real executable as a shell would, in a folder with shipped programs beside it:
//   <folder>/ullage, ullage-fake (fake_program), ullage-fern (another), ullage-locked (not executable),
//   ullage-notes.txt (executable), fifo

#include <nlohmann/json.hpp>

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ullage::cli {

using Words = std::vector<std::string>;

// Makes the folder above; removes it at the end.
class ShippedFolder final {
 public:
  ShippedFolder();
  ~ShippedFolder();
  ShippedFolder(const ShippedFolder&) = delete;
  ShippedFolder& operator=(const ShippedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  nlohmann::json json(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

struct Finished {
  int exit_code = 0;  // 128 + n for signal n
  std::string out;
  std::string err;
};

// A process with both outputs in pipes. The destructor kills it if it still runs.
class Process final {
 public:
  // The first word is the file to execute. `variables` are added to the environment.
  explicit Process(const Words& words, const std::map<std::string, std::string>& variables = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Reads until stdout holds `text`, or both outputs end.
  void until(const std::string& text);
  void send(int signal) const;
  // Reads both outputs to their end, then waits for the process.
  Finished finish();

 private:
  bool read_some();
  pid_t pid_ = -1;
  int ends_[2] = {-1, -1};
  std::string texts_[2];
};

}  // namespace ullage::cli
