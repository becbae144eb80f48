// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program once under the recorder and reads what was recorded. The program runs in an empty folder of its own,
// unless it is a shipped program or the person asked for --here. Its output goes to a file; if it fails, the last lines
// are shown.

#include "ullage/base/bytes.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/signals.h"
#include "ullage/store/spill_folder.h"
#include "ullage/trace/take/take.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::cli {

// Why a prediction cannot be made: lines for stderr, and the exit code. Without lines: a signal.
struct Failure {
  int exit_code = 1;
  std::vector<std::string> lines;
  bool by_program = false;   // the program itself failed
  bool out_of_time = false;  // it was killed at TakeOrder::deadline
};

// A new temporary folder. It is removed, with everything in it, when this object is destroyed.
class ScratchFolder final {
 public:
  // Makes it in TMPDIR, else in /tmp. System if that fails.
  static Result<ScratchFolder> make();

  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

// Returns the last 8 lines in `file` that are not empty, shortened and made harmless for a terminal.
std::vector<std::string> last_lines_of(const std::filesystem::path& file);

struct TakeOrder {
  std::string name;                                                 // "batch 2": for progress and errors
  std::vector<std::string> words;                                   // of the program, placeholders filled in
  std::uint64_t stop_after = 0;                                     // it is ended after so many steps; 0: it is not
  std::string rehearsal;                                            // a shipped program's sizes (store::LedgerSettings)
  std::optional<std::chrono::steady_clock::time_point> deadline{};  // the program is killed then; none: never
};

struct TakeDone {
  trace::TraceFile file;
  std::uint64_t steps = 0;  // whole steps recorded
  bool stopped = false;     // the recorder ended it at a step's end; else it ended by itself
  Bytes others;             // the most that all processes held together, less the most that the largest one held
};

class TakeRunner final {
 public:
  // `program.words` are ignored, because each order has its own. With `here` the program runs in the working folder. A
  // `budget` of zero means unlimited.
  TakeRunner(Launch program, Bytes budget, store::SpillPlace spill, bool here, Progress& progress);

  // Returns a runner that does not spill: a request that does not fit is refused, and the run fails. Its budget is
  // larger, by a quarter or by what the machine has beyond it if that is less. A pool that cannot spill refuses
  // requests near its limit, so a program that just fits the budget could not run there.
  TakeRunner without_spill() const;

  // Runs the program. If a signal ended it, or arrived meanwhile, returns a failure with exit code 128 + n and no
  // lines.
  std::variant<TakeDone, Failure> run(const TakeOrder& order);

  // Runs the program without Ullage's runtime, until it ends. Returns the most that all its processes held together, as
  // far as it was seen; 0 if there was one process. Failures are as in run().
  std::variant<Bytes, Failure> run_plainly(const TakeOrder& order);

 private:
  struct Ended;
  // Runs the program, without Ullage's runtime if `plainly`.
  std::variant<Ended, Failure> launched(const TakeOrder& order, bool plainly, SignalForwarder& signals);
  Launch launch_of(const TakeOrder& order, const std::filesystem::path& scratch) const;
  Failure advised(Failure failure, const std::vector<std::string>& words) const;

  Launch program_;
  Bytes budget_;
  store::SpillPlace spill_;
  bool here_;
  Progress& progress_;
};

}  // namespace ullage::cli
