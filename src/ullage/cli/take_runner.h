// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program once under the recorder, in a folder of its own, and reads what was recorded. Its outputs go to a file
// there; the last lines are told when it fails.

#include "ullage/base/bytes.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/progress.h"
#include "ullage/store/spill_folder.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::cli {

// What stands behind a prediction that cannot be made: lines for stderr, and the exit code.
struct Failure {
  int exit_code = 1;
  std::vector<std::string> lines;
  bool by_program = false;  // it ended with a failure of its own
};

// A new folder among the temporary ones, removed with all that is in it.
class ScratchFolder final {
 public:
  // In TMPDIR, else /tmp. System: it cannot be made.
  static Result<ScratchFolder> make();

  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

// What a program printed last into `file`, each line made fit for a terminal.
std::vector<std::string> last_lines_of(const std::filesystem::path& file);

struct TakeOrder {
  std::string name;                // "batch 2": for progress and errors
  std::vector<std::string> words;  // of the program, filled in
  std::uint64_t stop_after = 0;    // see store::LedgerSettings
  std::string rehearsal;           // likewise
};

struct TakeDone {
  trace::TraceFile file;
  std::uint64_t steps = 0;  // whole ones
  bool stopped = false;     // it was ended at a border; else it ended by itself
};

class TakeRunner final {
 public:
  // `program`: its words are those of the orders; `here`: it runs where we are. `budget` zero: unlimited.
  TakeRunner(Launch program, Bytes budget, store::SpillPlace spill, bool here, Progress& progress);

  // Nothing is moved out of memory: what does not fit is refused, and the run fails.
  TakeRunner without_spill() const;

  // A signal that ended it, or came meanwhile, is a failure with exit code 128 + n and no words.
  std::variant<TakeDone, Failure> run(const TakeOrder& order);

 private:
  Launch launch_of(const TakeOrder& order, const std::filesystem::path& scratch) const;
  Failure advised(Failure failure, const std::vector<std::string>& words) const;

  Launch program_;
  Bytes budget_;
  store::SpillPlace spill_;
  bool here_;
  Progress& progress_;
};

}  // namespace ullage::cli
