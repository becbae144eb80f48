// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/advise_command.h"

#include "ullage/advise/advice.h"
#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/advise_runs.h"
#include "ullage/cli/adviser.h"
#include "ullage/cli/knobs.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/programs.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/rehearsed_runs.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/read/input.h"
#include "ullage/report/advice_curve.h"
#include "ullage/report/advice_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using advise::Advice;
using Clock = std::chrono::steady_clock;

int refused_as(const Error& error, std::ostream& err) {
  const bool wrong_use = error.kind == Error::Kind::BadArgument;
  return refuse({to_int(wrong_use ? ExitCode::WrongUse : ExitCode::Failed), error.text()}, "advise", err);
}

// Returns the bytes that --memory states.
Result<Bytes> stated_memory(const std::string& text) {
  Result<Bytes> size = parse_bytes(text);
  if (!size) return wrong(size.error().message, "--memory");
  if (*size == Bytes{}) return wrong("0 bytes were stated; give a size above 0, such as 4GiB", "--memory");
  return size;
}

Result<AdviseQuestion> read_question(const AdviseOptions& options, bool has_cuda) {
  AdviseQuestion question;
  question.began = Clock::now(), question.seconds = Seconds{options.seconds}, question.target = options.target;
  question.curves = options.html.has_value();
  question.machine = auto_budget(read_machine_memory(options.roots));
  if (options.memory && options.device.value_or("cpu") != "cpu")
    return wrong("cannot be given with --device: --device cuda:SIZE states the card's memory", "--memory");
  question.device = options.device.value_or(has_cuda && !options.memory ? "cuda" : "cpu");
  if (question.device != "cpu") {
    ULLAGE_TRY_VALUE(question.card, read_dry_card(question.device));
    question.memory = Bytes{question.card->model.total};
  } else if (options.memory && *options.memory != "auto") {
    ULLAGE_TRY_VALUE(question.memory, stated_memory(*options.memory));
  } else {
    question.memory = question.machine;
    if (question.memory == Bytes{})
      return wrong("this machine does not show how much memory it has; state a size such as 8GiB", "--memory");
  }
  if (options.seconds <= 0)
    return wrong(fmt::format("{} seconds were stated; give at least 1", options.seconds), "--seconds");
  if (options.vary.empty() && options.at.empty()) return question;
  ULLAGE_TRY_VALUE(const Knobs knobs, read_knobs(options.vary, options.at));
  ULLAGE_TRY(check_placeholders(options.target, knobs.at));
  if (knobs.at.size() > 1) return wrong("one size can be searched, there are 2", "--vary");
  question.knob = knobs.at.front();
  return question;
}

// The page that --html asks for; none: no page.
Result<std::optional<ReportFile>> prepared_page(const AdviseOptions& options) {
  if (!options.html) return std::optional<ReportFile>();
  ULLAGE_TRY_VALUE(ReportFile page, ReportFile::prepare(*options.html, "the page", "--html"));
  return std::optional(std::move(page));
}

// Returns the exit code.
int write_answer(const AdviseOptions& options, const std::optional<ReportFile>& page, const Advice& advice,
                 Streams streams) {
  if (options.json) {
    report::write_json(advice, streams.out);
  } else {
    const auto style = terminal_style(STDOUT_FILENO, [](const char* name) { return std::getenv(name); });
    report::write_terminal(advice, style, options.top, streams.out);
  }
  streams.out.flush();
  if (!page) return to_int(ExitCode::Done);
  const Status written = page->write([&](std::ostream& out) {
    report::write_html(advice, out);
    return success();
  });
  if (!written) return refused_as(written.error(), streams.err);
  streams.err << "ullage: wrote " << *options.html << '\n';
  return to_int(ExitCode::Done);
}

Result<std::unique_ptr<AdviseRuns>> runs_for(const AdviseOptions& options, const AdviseQuestion& question,
                                             Launch program, const Result<TorchFound>& torch, Progress& progress,
                                             Streams streams) {
  ULLAGE_TRY_VALUE(ScratchFolder scratch, ScratchFolder::make());
  if (question.card) {
    if (!torch) return torch.error();
    ULLAGE_TRY_VALUE(DryRunner runner, DryRunner::make(*torch));
    return dry_runs(std::move(program), std::move(runner), question.device, *question.card, std::move(scratch));
  }
  program.preload = preload_of(streams.err);
  store::SpillPlace spill;
  if (Result<store::SpillPlace> place = store::default_spill_place()) spill = std::move(*place);
  const Bytes machine = question.machine;
  if (is_shipped_program(options.target.front())) {
    std::vector<std::string> words = program.words;
    // A rehearsal writes nothing, so it may run in this folder.
    return rehearsed_runs(TakeRunner(std::move(program), machine, std::move(spill), true, progress), std::move(words),
                          question.memory, progress);
  }
  return cpu_runs(std::move(program), question.memory, machine, std::move(spill), options.here, progress,
                  std::move(scratch));
}

int advise_program(const AdviseOptions& options, Streams streams) {
  std::variant<Launch, Refusal> found = find_target(options.target, "advise");
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refuse(*refusal, "advise", streams.err);
  Launch& program = std::get<Launch>(found);
  program.roots = options.roots;
  const bool shipped = is_shipped_program(options.target.front());
  if (shipped && (options.device || !options.vary.empty()))
    return refused_as(wrong(options.target.front() +
                                " computes on the CPU and is tried at other values of its own options: give --memory",
                            options.device ? "--device" : "--vary"),
                      streams.err);
  const Result<TorchFound> torch = shipped ? TorchFound() : find_torch(program);
  const Result<AdviseQuestion> question = read_question(options, torch && torch->has_cuda);
  if (!question) return refused_as(question.error(), streams.err);
  const auto page = prepared_page(options);
  if (!page) return refused_as(page.error(), streams.err);
  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  const std::vector<std::string> words = program.words;
  Result<std::unique_ptr<AdviseRuns>> runs = runs_for(options, *question, std::move(program), torch, progress, streams);
  if (!runs) return refused_as(runs.error(), streams.err);
  std::variant<Advice, Tried> answer = advise_on(**runs, *question, progress, streams.err);
  progress.pause();
  if (const auto* stopped = std::get_if<Tried>(&answer)) {
    if (stopped->interrupted) return stopped->exit_code;
    streams.err << "ullage: " << stopped->error << (stopped->last_lines.empty() ? "" : "; its last lines:") << '\n';
    for (const std::string& line : stopped->last_lines) streams.err << "ullage: " << line << '\n';
    return to_int(ExitCode::Failed);
  }
  auto& advice = std::get<Advice>(answer);
  advice.command = words;
  return write_answer(options, *page, advice, streams);
}

// A recording or a message cannot be run again, so only the remedies that explain computes are shown.
int advise_file(const AdviseOptions& options, Streams streams) {
  if (options.target.size() > 1)
    return refused_as(wrong(fmt::format("advise takes one file, there are {}", options.target.size()), ""),
                      streams.err);
  if (!options.vary.empty() || options.device)
    return refused_as(
        wrong("a file cannot be run, so this option needs -- and a command; with a file, give --memory only",
              options.device ? "--device" : "--vary"),
        streams.err);
  const std::string& file = options.target.front();
  Advice advice;
  if (options.memory) {
    const Result<Bytes> size = stated_memory(*options.memory);
    if (!size) return refused_as(size.error(), streams.err);
    advice.memory = *size;
  }
  const auto page = prepared_page(options);
  if (!page) return refused_as(page.error(), streams.err);
  const auto began = Clock::now();
  const Result<trace::Input> input = read::read_input_file(file);
  if (!input) return refuse({to_int(ExitCode::BadInput), input.error().text()}, "advise", streams.err);
  const auto diagnoses = diagnose::diagnose(*input, {file, std::nullopt, std::nullopt});
  if (diagnoses.empty())
    return refuse({to_int(ExitCode::BadInput), file + ": holds no error and no recording to advise on"}, "advise",
                  streams.err);
  const diagnose::Diagnosis& diagnosis = diagnoses.front();
  advice.command = {file};
  advice.device = diagnosis.facts.device ? fmt::format("GPU {}", *diagnosis.facts.device) : diagnosis.source.kind;
  if (!options.memory) advice.memory = diagnosis.facts.capacity.value_or(Bytes{});
  if (diagnosis.peak) advice.plain.peak = diagnosis.peak->bytes;
  if (!advice.plain.peak && diagnosis.facts.allocated && diagnosis.facts.requested)
    advice.plain.peak = *diagnosis.facts.allocated + *diagnosis.facts.requested;
  const bool is_comparable = advice.memory > Bytes{} && advice.plain.peak;
  advice.plain.fits =
      is_comparable ? std::optional(*advice.plain.peak <= advice.memory && !diagnosis.facts.requested) : std::nullopt;
  advice.refused = diagnosis.headline;
  add_computed_rows(diagnosis.remedies, advice);
  advice.notes.emplace_back("a file cannot be run, so nothing was tried: ullage advise -- COMMAND tries");
  advise::sort_rows(advice);
  advice.wall = Seconds{std::chrono::duration<double>(Clock::now() - began).count()};
  if (*page && advice.plain.peak) advice.plain.curve = report::curve_of(*input, *advice.plain.peak);
  return write_answer(options, *page, advice, streams);
}

}  // namespace

CLI::App* add_advise(CLI::App& app, AdviseOptions& options) {
  CLI::App* verb = app.add_subcommand("advise", "try the remedies on a program, and say which of them make it fit");
  set_usage(*verb,
            "ullage advise [OPTIONS] --device CARD [--vary NAME --at NAME=X] -- COMMAND\n"
            "       ullage advise [OPTIONS] --memory SIZE [--vary NAME --at NAME=X] -- COMMAND\n"
            "       ullage advise [OPTIONS] --memory SIZE PROGRAM [ARGS...]\n"
            "       ullage advise [--memory SIZE] FILE");
  verb->group("Verbs");
  verb->add_option("--device", options.device,
                   "run COMMAND on this card, which need not be there (rtx3060, cuda:8GiB);\nCOMMAND's torch must be a "
                   "CUDA build; the program is not changed")
      ->type_name("CARD|cuda[:SIZE]");
  verb->add_option("--memory", options.memory,
                   "run COMMAND on this machine's CPU, and judge by this much memory;\nauto: what this machine gives, "
                   "less 5 %")
      ->type_name("SIZE|auto");
  verb->add_option("--vary", options.vary,
                   "a size of COMMAND, written {NAME} there, whose largest value that\nfits is searched for")
      ->type_name("NAME");
  verb->add_option("--at", options.at, "the value that it should run with")->type_name("NAME=X");
  verb->add_option("--seconds", options.seconds, "end after this time, with the trials so far; default: 120")
      ->type_name("N");
  verb->add_option("--top", options.top, "how many rows to show; 0: all; default: 12")->type_name("N");
  verb->add_flag("--here", options.here,
                 "on the CPU: run COMMAND in this folder; without it, in an empty one\nthat is removed");
  verb->add_option("--html", options.html, "also write a page with the bytes that each run held, for a browser")
      ->type_name("OUT");
  verb->add_flag("--json", options.json, "the answer as JSON (docs/cli.md)");
  verb->footer(
      "COMMAND is run once as it is and once with each remedy, and ended after its third step. A\n"
      "remedy is switched on from outside; the answer says what to write into the program to keep it.\n"
      "PROGRAM is tried at other values of its options, each predicted from runs at small sizes.\n"
      "FILE is a recording, a snapshot or a log: nothing is run; the bytes that remedies save are computed.\n"
      "Exit code: 0 the answer is on stdout; 1 the program failed; 2 wrong use; 3 FILE cannot be read.");
  return verb;
}

int run_advise(const AdviseOptions& options, Streams streams) {
  if (options.target.empty()) {
    return refused_as(wrong("nothing to advise on: write -- and a command, or name a file", ""), streams.err);
  }
  const std::string& first = options.target.front();
  return first == "--" || is_shipped_program(first) ? advise_program(options, streams) : advise_file(options, streams);
}

}  // namespace ullage::cli
