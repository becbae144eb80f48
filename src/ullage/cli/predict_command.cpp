// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/predict_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/choice_search.h"
#include "ullage/cli/dry_command.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/planned_fit.h"
#include "ullage/cli/prediction_maker.h"
#include "ullage/cli/programs.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/result_changes.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"
#include "ullage/read/file/file_content.h"
#include "ullage/report/command_text.h"
#include "ullage/report/prediction_report.h"
#include "ullage/trace/file/trace_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

// What was asked, checked before any work starts.
struct Asked {
  predict::Question question;
  std::optional<ReportFile> keep;
};

Result<Bytes> predict_size(const std::string& text, const std::string& option) {
  Result<Bytes> size = parse_bytes(text);
  if (!size) return wrong(size.error().message, option);
  if (*size == Bytes{}) return wrong("0 bytes were stated; give a size above 0, such as 4GiB", option);
  return size;
}

Result<std::optional<predict::CudaQuestion>> predicted_card(const std::string& device) {
  if (device == "cpu") return std::optional<predict::CudaQuestion>();
  if (device == "cuda") return std::optional(predict::CudaQuestion{});
  if (!device.starts_with("cuda:"))
    return wrong("'" + device + "' is not a device: cpu, cuda or cuda:SIZE", "--device");
  ULLAGE_TRY_VALUE(const Bytes capacity, predict_size(device.substr(5), "--device"));
  return std::optional(predict::CudaQuestion{capacity, {}});
}

Result<Asked> read_question(const PredictOptions& options) {
  Asked asked;
  if (options.memory == "auto") {
    const Bytes machine = auto_budget(read_machine_memory(options.roots));
    if (machine > Bytes{}) asked.question.memory = machine;
  } else if (options.memory) {
    ULLAGE_TRY_VALUE(asked.question.memory, predict_size(*options.memory, "--memory"));
  }
  ULLAGE_TRY_VALUE(asked.question.cuda, predicted_card(options.device));
  if (options.keep) {
    ULLAGE_TRY_VALUE(asked.keep, ReportFile::prepare(*options.keep, "the file of takes", "--keep"));
  }
  return asked;
}

int tell(const Failure& failure, std::ostream& err) {
  for (const std::string& line : failure.lines) err << "ullage: " << line << '\n';
  if (failure.exit_code == to_int(ExitCode::WrongUse)) err << "ullage: see 'ullage help predict'\n";
  return failure.exit_code;
}

int refused(const Error& error, std::ostream& err) { return tell({to_int(ExitCode::WrongUse), {error.text()}}, err); }

// Returns the command to type next. `target` is what would be typed after `ullage run`; empty if a file was read.
std::string next_command(const PredictOptions& options, const Made& made, const std::vector<std::string>& target) {
  if (target.empty()) return report::command_line("explain", {options.target.front()});
  if (options.keep) return report::command_line("explain", {*options.keep});
  const predict::Prediction& prediction = made.prediction;
  const Bytes all = prediction.process_peak + prediction.others;
  const Bytes need = prediction.memory ? std::min(*prediction.memory, all) : all;
  const std::string begin = "run --memory " + report::as_option(need);
  const std::vector<std::string> words = with_needed(target, made.takes.changes);
  // The added options are at the end, where a long command is cut off.
  return words == target ? report::command_line(begin, words) : report::whole_command_line(begin, words);
}

int answer(const PredictOptions& options, const Asked& asked, const Made& made, const std::vector<std::string>& target,
           Streams streams) {
  if (options.json) {
    report::write_json(made.prediction, streams.out);
  } else {
    const auto style = terminal_style(STDOUT_FILENO, [](const char* name) { return std::getenv(name); });
    report::write_terminal(made.prediction, style, next_command(options, made, target), streams.out);
  }
  streams.out.flush();
  if (!asked.keep) return to_int(ExitCode::Done);
  const Status kept = asked.keep->write([&](std::ostream& out) {
    trace::write_trace_file(made.takes, out);
    return success();
  });
  if (!kept) return tell({to_int(ExitCode::Failed), {kept.error().text()}}, streams.err);
  streams.err << "ullage: wrote " << *options.keep << '\n';
  return to_int(ExitCode::Done);
}

int predict_file(const PredictOptions& options, Asked asked, Streams streams) {
  const std::string& file = options.target.front();
  if (options.target.size() > 1) {
    return refused(wrong("predict takes one file, there are " + std::to_string(options.target.size()), ""),
                   streams.err);
  }
  if (!options.vary.empty())
    return refused(wrong("a file has its sizes already, so --vary needs -- and a command", "--vary"), streams.err);
  Result<std::vector<Knob>> at = read_at(options.at);
  if (!at) return refused(at.error(), streams.err);
  asked.question.at = std::move(at).value();
  const Result<read::FileContent> content = read::FileContent::open(file);
  if (!content) return tell({to_int(ExitCode::BadInput), {content.error().text()}}, streams.err);
  Result<trace::TraceFile> takes = trace::read_trace_file(content->bytes(), file);
  if (!takes) return tell({to_int(ExitCode::BadInput), {takes.error().text()}}, streams.err);
  std::variant<Made, Failure> made = make_prediction(std::move(takes).value(), asked.question, file);
  if (const auto* failure = std::get_if<Failure>(&made)) return tell(*failure, streams.err);
  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  add_planned_fit(std::get<Made>(made).prediction, progress, streams.err);
  return answer(options, asked, std::get<Made>(made), {}, streams);
}

// Returns the budget for the runs: what the machine gives, or the memory asked about if that is less. Takes of small
// sizes need less anyway; a run at the target size spills what does not fit.
Bytes budget_of(const PredictOptions& options, const Asked& asked) {
  const Bytes machine = auto_budget(read_machine_memory(options.roots));
  if (!asked.question.memory) return machine;
  return machine > Bytes{} ? std::min(machine, *asked.question.memory) : *asked.question.memory;
}

store::SpillPlace spill_place(std::ostream& err) {
  Result<store::SpillPlace> place = store::default_spill_place();
  if (place) return std::move(place).value();
  err << "ullage: warning: " << place.error().text() << "; nothing can be moved out of memory\n";
  return {};
}

// What to record, and the words with which a person would run it at the target size.
struct Source {
  std::unique_ptr<RecordedProgram> program;
  std::vector<std::string> target;
};

Result<Source> command_source(const PredictOptions& options, TakeRunner runner, std::vector<std::string> words,
                              Progress& progress, std::ostream& err) {
  if (options.vary.empty()) {
    return wrong("say what varies: --vary batch --at batch=128, and write {batch} where the command has its size",
                 "--vary");
  }
  ULLAGE_TRY_VALUE(Knobs knobs, read_knobs(options.vary, options.at));
  ULLAGE_TRY(check_placeholders(words, knobs.at));
  Source source;
  source.target = fill(words, knobs.at);
  source.target.insert(source.target.begin(), "--");
  source.program =
      std::make_unique<RecordedCommand>(std::move(runner), std::move(words), std::move(knobs), progress, err);
  return source;
}

Result<Source> shipped_source(const PredictOptions& options, TakeRunner runner, std::vector<std::string> words) {
  if (!options.vary.empty() || !options.at.empty()) {
    return wrong(options.target.front() +
                     " chooses small sizes itself and is predicted at the sizes of its own options: "
                     "leave this option out, or write '--' and the command",
                 options.vary.empty() ? "--at" : "--vary");
  }
  return Source{std::make_unique<RecordedRehearsal>(std::move(runner), std::move(words)), options.target};
}

int predict_program(const PredictOptions& options, const Asked& asked, Streams streams) {
  std::variant<Launch, Refusal> found = find_target(options.target, "predict");
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refuse(*refusal, "predict", streams.err);
  Launch& launch = std::get<Launch>(found);
  launch.roots = options.roots;
  launch.preload = preload_of(streams.err);
  const std::vector<std::string> words = launch.words;
  const store::SpillPlace spill = spill_place(streams.err);

  const bool shipped = options.target.front() != "--";  // a rehearsal writes nothing, wherever it runs
  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  TakeRunner runner(std::move(launch), budget_of(options, asked), spill, options.here || shipped, progress);
  Result<Source> source = shipped ? shipped_source(options, std::move(runner), words)
                                  : command_source(options, std::move(runner), words, progress, streams.err);
  if (!source) return refused(source.error(), streams.err);
  std::variant<Made, Failure> made = make_prediction(*source->program, asked.question, progress, streams.err);
  if (auto* done = std::get_if<Made>(&made)) {
    if (auto stopped = add_largest_choices(*source->program, asked.question, progress, *done)) made = *stopped;
  }
  if (auto* done = std::get_if<Made>(&made)) add_planned_fit(done->prediction, progress, streams.err);
  progress.pause();
  if (const auto* failure = std::get_if<Failure>(&made)) return tell(*failure, streams.err);
  return answer(options, asked, std::get<Made>(made), source->target, streams);
}

}  // namespace

CLI::App* add_predict(CLI::App& app, PredictOptions& options) {
  CLI::App* verb = app.add_subcommand("predict", "say what a program will need at a size, before it is run there");
  set_usage(*verb,
            "ullage predict [OPTIONS] PROGRAM [ARGS...]\n"
            "       ullage predict [OPTIONS] --vary NAME[=A,B,C] --at NAME=X -- COMMAND with {NAME}\n"
            "       ullage predict [OPTIONS] --device CARD [--vary NAME --at NAME=X] -- COMMAND\n"
            "       ullage predict [OPTIONS] FILE.ullage [--at NAME=X]");
  verb->group("Verbs");
  verb->add_option("--vary", options.vary,
                   "the size that changes, and three or more small values of it to run;\nthe name alone: Ullage "
                   "chooses the values; at most two names")
      ->type_name("NAME[=A,B,C]");
  verb->add_option("--at", options.at, "the size to predict, one for each --vary")->type_name("NAME=X");
  verb->add_option("--memory", options.memory,
                   "also say whether it fits, and the largest size that does;\nauto: what this machine gives, less 5 %")
      ->type_name("SIZE|auto");
  verb->add_option(
          "--device", options.device,
          "if COMMAND's torch is a CUDA build: dry-run it, no card needed, and say\nwhat it takes of this card "
          "(rtx3090, cuda:24GiB, *2: two of them);\notherwise: also estimate what a card of that size would hold")
      ->type_name("CARD|cuda[:SIZE]");
  verb->add_option("--seconds", options.seconds, "the longest that a dry run may take; default: 300")->type_name("N");
  verb->add_flag("--here", options.here, "run COMMAND in this folder; without it, in an empty one that is removed");
  verb->add_option("--keep", options.keep, "also write what was recorded, for explain and for predict again")
      ->type_name("FILE");
  verb->add_flag("--json", options.json, "the answer as JSON (docs/cli.md)");
  verb->footer(
      "COMMAND is run once for each size and ended after its third step. What it prints is shown only\n"
      "when it fails. A dry run works in this folder; what it writes is made of zeros, and torch.save\n"
      "overwrites no existing file. {{NAME}} stands for the text {NAME}. Exit code: 0 the answer\n"
      "is on stdout; 1 the program failed; 2 wrong use; 3 FILE cannot be read, or is damaged.\n(" +
      programs_here() + ")");
  return verb;
}

bool is_take_file(const std::string& word) {
  if (word == "--" || is_shipped_program(word)) return false;
  std::error_code ignored;
  return word.ends_with(".ullage") || word.find('/') != std::string::npos || fs::is_regular_file(word, ignored);
}

int run_predict(const PredictOptions& options, Streams streams) {
  if (predicts_dry(options)) return predict_dry(options, streams);
  if (options.seconds) return refused(wrong("is for a dry run: --device CARD -- COMMAND", "--seconds"), streams.err);
  Result<Asked> asked = read_question(options);
  if (!asked) return refused(asked.error(), streams.err);
  if (!options.target.empty() && is_take_file(options.target.front())) {
    return predict_file(options, std::move(asked).value(), streams);
  }
  return predict_program(options, *asked, streams);
}

}  // namespace ullage::cli
