// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/explain_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/read/input.h"
#include "ullage/report/convert/convert.h"
#include "ullage/report/diagnosis_report.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

using Diagnoses = std::vector<diagnose::Diagnosis>;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed) && !failed;
}

// Refuses, before any work starts, an output that cannot be written or that is the input itself.
Result<ReportFile> prepare(const std::string& name, const std::string& what, const std::string& option,
                           const std::string& input) {
  if (name == "-") return wrong(what + " goes to a file, not to standard output", option);
  if (same_file(name, input == "-" ? "/dev/stdin" : input)) return wrong(what + " would replace the input", name);
  return ReportFile::prepare(name, what, option);
}

struct ExplainFiles {
  std::optional<ReportFile> page, converted;
};

Result<ExplainFiles> prepare_explain_files(const ExplainOptions& options) {
  ExplainFiles prepared;
  const std::string& input = options.files.front();
  if (!options.html.empty()) {
    ULLAGE_TRY_VALUE(prepared.page, prepare(options.html, "the page", "--html", input));
  }
  if (!options.convert.empty()) {
    const std::string& format = options.convert.front();
    if (format != "memory_viz" && format != "perfetto") {
      return wrong("unknown format '" + format + "', there are memory_viz and perfetto", "--convert");
    }
    ULLAGE_TRY_VALUE(ReportFile converted, prepare(options.convert.back(), "the converted file", "--convert", input));
    if (prepared.page && prepared.page->path() == converted.path()) {
      return wrong("the page and the converted file cannot be one file", "--convert");
    }
    prepared.converted = converted;
  }
  return prepared;
}

// Says why `input` cannot be converted; empty if it can.
std::string no_conversion(const std::vector<std::string>& convert, const trace::Input& input) {
  if (convert.empty() || std::holds_alternative<trace::Recording>(input)) return "";
  if (std::holds_alternative<trace::UnderstoodFile>(input)) return "";
  if (std::holds_alternative<trace::Log>(input)) return "a text has no history to convert";
  return convert.front() == "memory_viz" ? "only a snapshot or a trace can become a memory_viz file" : "";
}

Status convert(const std::string& format, const trace::Input& input, std::ostream& out) {
  if (format == "perfetto") return report::write_perfetto(input, out);
  return report::write_memory_viz(input, out);
}

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

std::optional<trace::At> at_of(const std::string& word) {
  if (word == "peak") return trace::At::Peak;
  if (word == "oom") return trace::At::OutOfMemory;
  if (word == "end") return trace::At::End;
  return std::nullopt;
}

void answer(const ExplainOptions& options, const Diagnoses& diagnoses, const trace::Input& input, std::ostream& out) {
  if (options.json) {
    report::write_json(diagnoses, input, out);
  } else {
    report::TerminalStyle style = terminal_style(STDOUT_FILENO, [](const char* name) { return std::getenv(name); });
    style.owners = options.top;
    report::write_terminal(diagnoses, style, out);
  }
  out.flush();
}

int write_files(const ExplainOptions& options, const ExplainFiles& prepared, const Diagnoses& diagnoses,
                const trace::Input& input, Progress& progress, std::ostream& err) {
  const auto write = [&](const ReportFile& file, const std::string& name, const ReportFile::Writer& writer) {
    const Status written = file.write(writer);
    progress.pause();
    if (written) return err << "ullage: wrote " << name << '\n', to_int(ExitCode::Done);
    return refuse({to_int(ExitCode::Failed), written.error().text()}, "explain", err);
  };
  int code = to_int(ExitCode::Done);
  if (prepared.page) {
    progress.stage("drawing the page");
    code = write(*prepared.page, options.html, [&](std::ostream& out) {
      report::write_html(diagnoses, input, out);
      return success();
    });
  }
  if (prepared.converted && code == to_int(ExitCode::Done)) {
    progress.stage("converting");
    code = write(*prepared.converted, options.convert.back(),
                 [&](std::ostream& out) { return convert(options.convert.front(), input, out); });
  }
  return code;
}

}  // namespace

CLI::App* add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* verb = app.add_subcommand("explain", "say why memory ran out, and what to do");
  set_usage(*verb, "ullage explain [OPTIONS] FILE|-");
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
  verb->footer(
      "Exit code: 0 the answer is on stdout; 2 wrong use; 3 FILE cannot be read, is damaged, or is a text\n"
      "with neither an error nor a table. Nothing in FILE is run, a snapshot's pickle included.\n"
      "Colors appear on a terminal only, and not if NO_COLOR is set.");
  return verb;
}

int run_explain(const ExplainOptions& options, Streams streams) {
  if (options.files.size() != 1) {
    return refuse({to_int(ExitCode::WrongUse),
                   options.files.empty() ? "nothing to explain: name a file, or - for standard input"
                                         : "explain takes one file, there are " + std::to_string(options.files.size())},
                  "explain", streams.err);
  }
  const std::string& file = options.files.front();
  const Result<ExplainFiles> prepared = prepare_explain_files(options);
  if (!prepared) return refuse({to_int(ExitCode::WrongUse), prepared.error().text()}, "explain", streams.err);

  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  progress.stage(file == "-" ? "reading standard input" : "reading " + file);
  const Result<trace::Input> input = read::read_input_file(file);
  if (!input) {
    progress.pause();
    return refuse({to_int(ExitCode::BadInput), input.error().text()}, "explain", streams.err);
  }
  if (const std::string why = no_conversion(options.convert, *input); !why.empty()) {
    progress.pause();
    return refuse({to_int(ExitCode::WrongUse), "--convert: " + why}, "explain", streams.err);
  }
  progress.stage("looking for causes");
  const Diagnoses diagnoses = diagnose::diagnose(*input, {file, options.device, at_of(options.at)});
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
    return refuse({to_int(ExitCode::BadInput), file + ": nothing was recorded in it"}, "explain", streams.err);
  answer(options, diagnoses, *input, streams.out);
  return write_files(options, *prepared, diagnoses, *input, progress, streams.err);
}

}  // namespace ullage::cli
