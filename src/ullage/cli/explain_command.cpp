// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/explain_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/explain_files.h"
#include "ullage/cli/explained_run.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/target.h"
#include "ullage/cli/usage.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/read/input.h"

#include <unistd.h>

#include <ostream>

namespace ullage::cli {
namespace {

std::string devices_of(const trace::Input& input) {
  std::string names;
  const auto add = [&](const auto& number) { names += (names.empty() ? "" : ", ") + std::to_string(number); };
  if (const auto* recording = std::get_if<trace::Recording>(&input)) {
    for (const trace::DeviceRecording& device : recording->devices) add(device.device);
  } else if (const auto* profile = std::get_if<trace::Profile>(&input)) {
    for (const trace::Profile::Device& device : profile->devices) add(device.index);
  } else if (std::holds_alternative<trace::UnderstoodFile>(input)) {
    return "a trace has one device";
  }
  return names.empty() ? "it names none" : "it has " + names;
}

}  // namespace

CLI::App* add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* verb = app.add_subcommand("explain", "say why memory ran out, and what to do");
  set_usage(*verb, "ullage explain [OPTIONS] FILE|-\n       ullage explain [OPTIONS] -- COMMAND [ARGS...]");
  verb->group("Verbs");
  // gather_words collects the files; this option only makes the help text list them.
  verb->add_option(
          "FILE", [](const CLI::results_t&) { return true; },
          "a log with the error in it, a memory snapshot (torch.cuda.memory.\n_dump_snapshot), a trace of ullage run "
          "--record (.ullage), a printed\nmemory_summary(), or a profiler trace (.json, .json.gz); its kind is\n"
          "found from its content; -: standard input")
      ->type_name("");
  verb->add_option("--device", options.device, "explain that device only; default: all (a trace has one)")
      ->type_name("N");
  verb->add_flag("--json", options.json, "the answer as JSON (docs/cli.md)");
  verb->add_option("--out", options.out,
                   "write the answer there; default: stdout; with a COMMAND stderr,\nbecause stdout is the COMMAND's")
      ->type_name("FILE");
  verb->add_option("--html", options.html, "also write a page with timeline and segments, for a browser")
      ->type_name("OUT");
  verb->add_option("--top", options.top, "how many owners of bytes to name; the rest is one row")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
  verb->add_option("--at", options.at,
                   "say who held the bytes at this moment; default: at the last failed\nrequest if the file has one, "
                   "else at the peak")
      ->type_name("peak|oom|end")
      ->check(CLI::IsMember({"peak", "oom", "end"}).description(""));
  verb->add_option("--convert", options.convert, "also write it as pytorch.org/memory_viz or Perfetto reads it")
      ->type_name("memory_viz|perfetto OUT")
      ->expected(1)
      ->type_size(2);
  verb->add_option(
          "--keep", options.keep,
          "with a COMMAND that runs out of memory: the folder for the snapshot\n(oom-HOST-PID.pickle) and its output "
          "(.log); default: $ULLAGE_EXPLAIN,\nelse this folder")
      ->type_name("FOLDER");
  verb->add_option(
          "--events", options.events,
          "with a COMMAND: how many events of torch's memory history to keep, the\nnewest; default: 100000; 0: "
          "no history")
      ->type_name("N")
      ->check(CLI::Range(0, 100'000'000).description(""));
  verb->footer(
      "COMMAND is run as it is. If it runs out of memory, or a card refuses a request, the answer follows on\n"
      "stderr, and the snapshot and the log are kept. If not, nothing is written.\n"
      "The exit code is COMMAND's.\n"
      "Jobs: ULLAGE_EXPLAIN=FOLDER watches every Python that has the package ullage (docs/explain.md).\n"
      "Exit code with FILE: 0 the answer is on stdout; 2 wrong use; 3 FILE cannot be read, is damaged, or\n"
      "is a text with neither an error nor a table. Nothing in FILE is run, a snapshot's pickle included.\n"
      "Colors appear on a terminal only, and not if NO_COLOR is set.");
  return verb;
}

int run_explain(const ExplainOptions& options, Streams streams) {
  if (!options.command.empty()) return run_explained(options, streams);
  if (options.keep || options.events) {
    return refuse({to_int(ExitCode::WrongUse), std::string(options.keep ? "--keep" : "--events") +
                                                   " is for a command: ullage explain [OPTIONS] -- COMMAND"},
                  "explain", streams.err);
  }
  if (options.files.size() != 1) {
    return refuse({to_int(ExitCode::WrongUse),
                   options.files.empty() ? "nothing to explain: name a file, or - for standard input"
                                         : "explain takes one file, there are " + std::to_string(options.files.size())},
                  "explain", streams.err);
  }
  const std::string& file = options.files.front();
  const Result<ExplainFiles> prepared = prepare_explain_files(options, file);
  if (!prepared) return refuse({to_int(ExitCode::WrongUse), prepared.error().text()}, "explain", streams.err);

  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  progress.stage(file == "-" ? "reading standard input" : "reading " + file);
  const Result<trace::Input> input = read::read_input_file(file);
  if (!input) {
    progress.pause();
    return refuse({to_int(ExitCode::BadInput), input.error().text()}, "explain", streams.err);
  }
  if (const std::string why = no_conversion(options, *input); !why.empty()) {
    progress.pause();
    return refuse({to_int(ExitCode::WrongUse), "--convert: " + why}, "explain", streams.err);
  }
  progress.stage("looking for causes");
  const Diagnoses diagnoses = diagnose::diagnose(*input, {file, options.device, moment_of(options)});
  progress.pause();
  if (diagnoses.empty() && options.device) {
    return refuse({to_int(ExitCode::WrongUse),
                   file + ": has nothing about device " + std::to_string(*options.device) + "; " + devices_of(*input)},
                  "explain", streams.err);
  }
  if (diagnoses.empty() && options.at == "oom") {
    return refuse({to_int(ExitCode::WrongUse), file + ": no request failed in it; --at peak shows the peak"}, "explain",
                  streams.err);
  }
  if (diagnoses.empty())
    return refuse({to_int(ExitCode::BadInput), file + ": holds no take and no event; record the program again"},
                  "explain", streams.err);
  if (const int code = write_answer(options, *prepared, diagnoses, *input, streams.out, STDOUT_FILENO, streams.err);
      code != to_int(ExitCode::Done)) {
    return code;
  }
  const auto before = [&](const std::string& stage) { stage.empty() ? progress.pause() : progress.stage(stage); };
  return write_beside(options, *prepared, diagnoses, *input, before, streams.err);
}

}  // namespace ullage::cli
