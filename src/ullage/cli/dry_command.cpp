// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/dry_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/dry_run.h"
#include "ullage/cli/knobs.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/size_search.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/words.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/read/input.h"
#include "ullage/report/command_text.h"
#include "ullage/report/diagnosis_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPredictedSteps = 3;
constexpr Seconds kUsualLimit{300};

Status copy_to(const ReportFile& file, const fs::path& from) {
  return file.write([&](std::ostream& out) -> Status {
    std::ifstream in(from, std::ios::binary);
    if (!in || !(out << in.rdbuf())) return Error{Error::Kind::System, "cannot be copied", from.string()};
    return success();
  });
}

// Writes the memory history and the report if they were asked for. Says on `err` what failed; returns the exit code.
int write_dry_files(const std::optional<ReportFile>& history, const std::string& history_name,
                    const std::optional<ReportFile>& report, DryDone& done, std::ostream& err) {
  int code = 0;
  const auto failed = [&](const std::string& message) {
    err << "ullage: " << message << '\n';
    code = to_int(ExitCode::Failed);
  };
  if (history && done.history.empty()) {
    failed(history_name +
           ": the history was not written: no Python process of the program used a card with PyTorch's "
           "own allocator");
  } else if (history) {
    if (const Status copied = copy_to(*history, done.history); !copied)
      failed(copied.error().text());
    else
      done.report.history_file = history_name;
  }
  if (report) {
    const Status written =
        report->write([&](std::ostream& out) { return report::write_json(done.report, out), success(); });
    if (!written) failed(written.error().text());
  }
  return code;
}

// ---- run --dry

Status goes_with_dry(const RunOptions& options) {
  const auto refused = [](const char* option) {
    return wrong(
        "needs --memory when --dry is given: --device states the card's memory, --memory how much of it the program "
        "may hold",
        option);
  };
  if (options.host_memory) return refused("--host-memory");
  if (options.spill) return refused("--spill");
  if (options.plan) return refused("--plan");
  if (options.no_plan) return refused("--no-plan");
  if (options.allow)
    return wrong("does not go with --dry: 'ullage advise --device CARD -- COMMAND' tries bf16 on a dry card",
                 "--allow");
  return success();
}

struct DryStart {
  Launch program;
  DryRunner runner;
};

std::variant<DryStart, int> start_dry(const std::vector<std::string>& target, const MachineRoots& roots,
                                      const char* verb, Streams streams) {
  std::variant<Launch, Refusal> found = find_target(target, verb);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refuse(*refusal, verb, streams.err);
  Launch& program = std::get<Launch>(found);
  program.roots = roots;
  Result<DryRunner> runner = DryRunner::make(program);
  if (!runner) return refuse_dry(runner.error(), verb, streams.err);
  return DryStart{std::move(program), std::move(runner).value()};
}

// ---- predict

struct DryQuestion {
  DryCard card;
  std::optional<Knobs> knobs;
  std::optional<ReportFile> keep;
};

Result<DryQuestion> read_dry_question(const PredictOptions& options) {
  DryQuestion question;
  ULLAGE_TRY_VALUE(question.card, read_dry_card(options.device));
  if (options.memory)
    return wrong("cannot be given for a dry run: --device cuda:SIZE states the card's memory", "--memory");
  if (!options.vary.empty() || !options.at.empty()) {
    ULLAGE_TRY_VALUE(question.knobs, read_knobs(options.vary, options.at));
    ULLAGE_TRY(check_placeholders(options.target, question.knobs->at));
    if (question.knobs->at.size() > 1) return wrong("a dry run can vary one size only", "--vary");
  }
  if (options.keep) {
    ULLAGE_TRY_VALUE(question.keep, ReportFile::prepare(*options.keep, "the memory history", "--keep"));
  }
  return question;
}

using Largest = report::DryReport::Largest;

class DryPredictor final {
 public:
  DryPredictor(DryStart start, const DryQuestion& question, const PredictOptions& options, Progress& progress)
      : start_(std::move(start)), question_(question), options_(options), progress_(progress) {}

  std::variant<DryDone, Refusal> at(std::optional<std::int64_t> size, bool history) {
    Launch program = start_.program;
    DryOrder order{options_.device, question_.card};
    order.history = history, order.quiet_program = true;
    order.steps = kPredictedSteps;
    order.limit = options_.seconds ? Seconds{*options_.seconds} : kUsualLimit;
    if (size) {
      Knob knob = question_.knobs->at.front();
      knob.value = *size;
      program.words = fill(program.words, {knob});
      progress_.stage(fmt::format("a dry run at {} {}", knob.name, *size));
    } else {
      progress_.stage("a dry run");
    }
    return start_.runner.run(program, order);
  }

  // Searches for the largest size that fits. `answer` is the result of the run at `first`. Ends early at a run of which
  // it is not known whether it fits.
  Largest largest(std::int64_t first, const report::DryReport& answer) {
    const Bytes room{question_.card.model.total};
    const SizesFound found = search_sizes(first, tried(answer), room, [&](std::int64_t size) {
      const auto done = at(size, /*history=*/false);
      const auto* run = std::get_if<DryDone>(&done);
      if (run == nullptr || !run->report.fits()) return std::optional<SizeTried>();
      return std::optional(tried(run->report));
    });
    return {question_.knobs->at.front().name, found.fits, found.too_large};
  }

 private:
  // A program that ran out of memory was refused the rest, so what it takes is not known.
  static SizeTried tried(const report::DryReport& answer) {
    if (answer.ran_out()) return {false, std::nullopt};
    return {true, answer.most_taken()};
  }

  DryStart start_;
  const DryQuestion& question_;
  const PredictOptions& options_;
  Progress& progress_;
};

// Diagnoses the memory history, and writes who held the card's memory. `kept` is the file that keeps the history; the
// diagnosis then names the next command, for that file. Without `kept`, `next` is the next command.
void write_owners(const DryDone& done, const std::optional<std::string>& kept, const std::string& next,
                  Streams streams) {
  if (done.history.empty()) return;
  const Result<trace::Input> input = read::read_input_file(done.history.string());
  if (!input) {
    streams.err << "ullage: " << input.error().text() << '\n';
    return;
  }
  const auto style = terminal_style(STDOUT_FILENO, [](const char* variable) { return std::getenv(variable); });
  auto diagnoses = diagnose::diagnose(*input, {kept.value_or("the dry run"), std::nullopt, std::nullopt});
  if (!kept) {
    for (diagnose::Diagnosis& one : diagnoses) one.next = next;
  }
  streams.out << '\n';
  report::write_terminal(diagnoses, style, streams.out);
}

// Returns the command to type next: the remedies if the program does not fit, else this question with its history kept.
std::string after_answer(const PredictOptions& options, bool fits) {
  std::string words = fits ? "predict --keep memory.pickle" : "advise";
  words += " --device " + report::quoted(options.device);
  for (const std::string& one : options.vary) words += " --vary " + report::quoted(one);
  for (const std::string& one : options.at) words += " --at " + report::quoted(one);
  return report::command_line(words, options.target);
}

}  // namespace

int run_dry(const RunOptions& options, Streams streams) {
  if (const Status fine = goes_with_dry(options); !fine) return refuse_dry(fine.error(), "run", streams.err);
  const std::string device = options.device == "cpu" ? "cuda" : options.device;
  const Result<DryCard> card = read_dry_card(device);
  if (!card) return refuse_dry(card.error(), "run", streams.err);
  std::optional<ReportFile> history, report;
  if (options.record) {
    Result<ReportFile> file = ReportFile::prepare(*options.record, "the memory history", "--record");
    if (!file) return refuse_dry(file.error(), "run", streams.err);
    history = *file;
  }
  if (!options.report.empty()) {
    Result<ReportFile> file = ReportFile::prepare(options.report);
    if (!file) return refuse_dry(file.error(), "run", streams.err);
    report = *file;
  }
  std::variant<DryStart, int> started = start_dry(options.target, options.roots, "run", streams);
  if (const int* code = std::get_if<int>(&started)) return *code;
  auto& [program, runner] = std::get<DryStart>(started);
  DryOrder order{device, *card};
  order.history = history.has_value();
  streams.err.flush();
  auto ran = runner.run(program, order);
  if (const auto* refusal = std::get_if<Refusal>(&ran)) return refuse(*refusal, "run", streams.err);
  auto& done = std::get<DryDone>(ran);
  const int files = write_dry_files(history, options.record.value_or(""), report, done, streams.err);
  if (options.quiet) {
    say_host_filled(done.report.host_filled, streams.err);
  } else {
    report::write_terminal(done.report, "ullage: ", streams.err);
    if (done.report.history_file) {
      streams.err << "ullage: next: " << report::command_line("explain", {*done.report.history_file}) << '\n';
    }
  }
  return done.report.exit_code != 0 ? done.report.exit_code : files;
}

bool predicts_dry(const PredictOptions& options) {
  if (options.target.empty() || options.target.front() != "--" || options.device == "cpu") return false;
  if (options.vary.empty() || names_a_card(options.device)) return true;
  std::variant<Launch, Refusal> found = find_target(options.target, "predict");
  const auto* program = std::get_if<Launch>(&found);
  if (program == nullptr) return false;
  const Result<TorchFound> torch = find_torch(*program);
  return torch && torch->has_cuda;
}

int predict_dry(const PredictOptions& options, Streams streams) {
  const Result<DryQuestion> question = read_dry_question(options);
  if (!question) return refuse_dry(question.error(), "predict", streams.err);
  std::variant<DryStart, int> started = start_dry(options.target, options.roots, "predict", streams);
  if (const int* code = std::get_if<int>(&started)) return *code;
  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  DryPredictor predictor(std::move(std::get<DryStart>(started)), *question, options, progress);
  std::optional<std::int64_t> size;
  if (question->knobs) size = question->knobs->at.front().value;
  auto ran = predictor.at(size, /*history=*/true);
  progress.pause();
  if (const auto* refusal = std::get_if<Refusal>(&ran)) return refuse(*refusal, "predict", streams.err);
  auto& done = std::get<DryDone>(ran);
  report::DryReport& report = done.report;
  const bool answered = report.used_the_card() && (report.exit_code == 0 || report.ran_out());
  if (!answered) {
    const char* why = report.exit_code != 0 ? "the program failed" : "the program never used the card";
    streams.err << "ullage: " << why << (done.last_lines.empty() ? "" : "; its last lines:") << '\n';
    for (const std::string& line : done.last_lines) streams.err << "ullage: " << line << '\n';
    report::write_terminal(report, "ullage: ", streams.err);
    return to_int(ExitCode::Failed);
  }
  if (size && report.fits()) report.largest = predictor.largest(*size, report);
  progress.pause();
  const int files = write_dry_files(question->keep, options.keep.value_or(""), {}, done, streams.err);
  if (options.json) {
    report::write_json(report, streams.out);
  } else {
    report::write_terminal(report, "", streams.out);
    write_owners(done, options.keep, after_answer(options, !report.ran_out()), streams);
  }
  streams.out.flush();
  return files;
}

}  // namespace ullage::cli
