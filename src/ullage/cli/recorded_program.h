// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the takes of a prediction. They come from a command that is started once for each size, or from a shipped
// program, which tries all sizes in one process.

#include "ullage/cli/knobs.h"
#include "ullage/cli/take_runner.h"
#include "ullage/predict/law.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::cli {

using Recorded = std::variant<trace::TraceFile, Failure>;

class RecordedProgram {
 public:
  virtual ~RecordedProgram() = default;
  // Records takes at the sizes to begin with. If the target is below these sizes, a command is recorded once, at the
  // target itself. A shipped program with two knobs may still be recorded several times, at small values of the other
  // knob.
  virtual Recorded first() = 0;
  // Records takes at other sizes of the same knobs.
  virtual Recorded at_sizes(const predict::Grid& grid) = 0;
  // Records one take at the target.
  virtual Recorded at_target(const std::vector<Knob>& target) = 0;
  // Returns this program with another value of an option. It does not spill: requests above its budget are refused.
  // Returns null if this is a command, because only a shipped program says which options it has.
  virtual std::unique_ptr<RecordedProgram> with(const std::string&, const std::string&) { return nullptr; }
  // What other processes of the program hold beside the recorded one at the target: the most of the takes so far, and
  // more if every larger value of a knob raised it, as the other ranks of torchrun do. A shipped program starts none.
  virtual Bytes others() const { return {}; }
};

class RecordedCommand final : public RecordedProgram {
 public:
  // `words` contain the placeholders. Notes go to `err`.
  RecordedCommand(TakeRunner runner, std::vector<std::string> words, Knobs knobs, Progress& progress,
                  std::ostream& err);
  Recorded first() override;
  Recorded at_sizes(const predict::Grid& grid) override;
  Recorded at_target(const std::vector<Knob>& target) override;
  Bytes others() const override;

 private:
  Recorded takes_at(const std::vector<std::vector<Knob>>& points);
  std::optional<Failure> add_take(const std::vector<Knob>& point);
  void note_end(const std::vector<Knob>& point, const TakeDone& done);
  const trace::Take* known(const std::vector<Knob>& point) const;

  TakeRunner runner_;
  std::vector<std::string> words_;
  Knobs knobs_;
  Progress& progress_;
  std::ostream& err_;
  trace::TraceFile all_;       // every take recorded so far
  std::vector<Bytes> others_;  // by take
  bool noted_ = false;         // the note that the program ends by itself was written
};

// Returns the words of a shipped program, its name first, with `--option value` in place of any earlier value of that
// option.
std::vector<std::string> with_option(std::vector<std::string> words, const std::string& option,
                                     const std::string& value);

class RecordedRehearsal final : public RecordedProgram {
 public:
  // `words` are the shipped program's, its name first. A rehearsal is killed at the deadline, if there is one.
  RecordedRehearsal(TakeRunner runner, std::vector<std::string> words,
                    std::optional<std::chrono::steady_clock::time_point> deadline = {});
  Recorded first() override;
  Recorded at_sizes(const predict::Grid& grid) override;
  Recorded at_target(const std::vector<Knob>& target) override;
  // If the option is a knob of the program, the takes of small sizes do not depend on its value. So programs with other
  // values of it share what they record, also after this object is destroyed.
  std::unique_ptr<RecordedProgram> with(const std::string& option, const std::string& value) override;
  // If other sizes are recorded after the first recording, calls `before` with the choices that the first one shows,
  // once, before they are. To record them takes longer than the first recording did. Call this before first().
  void call_before_other_sizes(std::function<void(const std::vector<Choice>&)> before) { before_ = std::move(before); }

 private:
  // What programs recorded that differ in the value of one option only, by the sizes that were asked for.
  using Shared = std::map<std::string, trace::TraceFile>;

  Recorded rehearse(const std::string& sizes);
  Recorded rehearse_more(const predict::Grid& grid);
  std::optional<trace::TraceFile> shared(const std::string& sizes) const;

  TakeRunner runner_;
  std::vector<std::string> words_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::function<void(const std::vector<Choice>&)> before_;
  std::vector<Choice> choices_;                                      // of the first recording
  std::map<std::string, std::shared_ptr<Shared>> shared_by_option_;  // by the option that with() was given
  // Of a program that with() made: the option, its value, and the takes to share. Null for other programs.
  Knob moved_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace ullage::cli
