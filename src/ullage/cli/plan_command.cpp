// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/plan_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/plan_comparison.h"
#include "ullage/cli/plan_maker.h"
#include "ullage/cli/plan_question.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"
#include "ullage/read/file/file_content.h"
#include "ullage/report/command_text.h"
#include "ullage/trace/file/trace_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

using Outcome = plan::Plan::Outcome;

struct PlanFiles {
  std::optional<ReportFile> plan, page;
};

// Refuses, before any work starts, an output that cannot be written or that is the input itself. Returns nothing if
// `name` is empty.
Result<std::optional<ReportFile>> prepare_to_plan(const std::string& name, const std::string& what,
                                                  const std::string& option, const std::vector<std::string>& inputs) {
  if (name.empty()) return std::optional<ReportFile>();
  if (name == "-") return wrong(what + " goes to a file, not to standard output", option);
  for (const std::string& input : inputs) {
    std::error_code failed;
    if (fs::equivalent(name, input, failed) && !failed) return wrong(what + " would replace the trace", option);
  }
  ULLAGE_TRY_VALUE(ReportFile file, ReportFile::prepare(name, what, option));
  return std::optional(file);
}

Result<PlanFiles> prepare_plan_files(const PlanOptions& options) {
  ULLAGE_TRY_VALUE(const auto plan, prepare_to_plan(options.out, "the plan", "--out", options.files));
  ULLAGE_TRY_VALUE(const auto page, prepare_to_plan(options.html, "the page", "--html", options.files));
  if (plan && page && plan->path() == page->path()) {
    return wrong("the plan and the page cannot be one file", "--html");
  }
  return PlanFiles{plan, page};
}

// Returns the middle one of the plans that cost time; if there is none, the last, which fits without a plan.
const plan::Plan& middle(const std::vector<plan::Plan>& curve) {
  std::vector<const plan::Plan*> planned;
  for (const plan::Plan& plan : curve) {
    if (plan.outcome == Outcome::Planned) planned.push_back(&plan);
  }
  return planned.empty() ? curve.back() : *planned[planned.size() / 2];
}

// "--allow bf16 " if the chosen recording was made so. Other changes are options of the recorded command itself.
std::string allowance_of(const report::PlanReport& report) {
  for (const report::ComparedWay& way : report.ways) {
    if (way.chosen && std::ranges::find(way.changes, "--allow bf16") != way.changes.end()) return "--allow bf16 ";
  }
  return "";
}

// Returns the command to type next: run with the plan, write the plan to a file, or ask for a budget that can be kept.
// Empty if no command helps.
std::string next_command(const PlanOptions& options, const report::PlanReport& report) {
  const std::vector<std::string> file = {report.file};
  if (!report.planned) {
    const Bytes memory = report.beside.memory_for(middle(report.curve).budget);
    return report::command_line("plan --memory " + report::as_option(memory), file);
  }
  const plan::PlanFile& planned = *report.planned;
  if (planned.plan.outcome == Outcome::Infeasible) {
    return report::command_line("plan --memory " + report::as_option(report.beside.memory_for(planned.plan.least)),
                                file);
  }
  std::vector<std::string> command = {"--"};
  command.insert(command.end(), planned.command.begin(), planned.command.end());
  const std::string memory = "--memory " + report::as_option(planned.memory);
  const std::string run =
      "run " + (planned.device == "cpu" ? "" : "--device " + planned.device + " ") + allowance_of(report) + memory;
  const bool fits = planned.plan.outcome == Outcome::Fits;
  if (planned.command.empty() && (fits || !options.out.empty())) return "";
  if (fits) return report::command_line(run, command);
  if (options.out.empty()) return report::command_line("plan " + memory + " --out plan.json", file);
  return report::command_line(run + " --plan " + report::quoted(options.out), command);
}

void answer(const PlanOptions& options, const report::PlanReport& report, std::ostream& out) {
  if (options.json) {
    report::write_json(report, out);
  } else {
    report::TerminalStyle style = terminal_style(STDOUT_FILENO, [](const char* name) { return std::getenv(name); });
    style.owners = options.top;
    report::write_terminal(report, style, next_command(options, report), out);
  }
  out.flush();
}

// Writes the plan, unless none keeps to the memory, and the page. Returns the exit code of the verb.
int write_files(const PlanOptions& options, const PlanFiles& prepared, const report::PlanReport& report,
                std::ostream& err) {
  const auto write = [&](const ReportFile& file, const std::string& name, const auto& writer) {
    const Status written = file.write([&](std::ostream& out) {
      writer(out);
      return success();
    });
    if (!written) return refuse({to_int(ExitCode::Failed), written.error().text()}, "plan", err);
    err << "ullage: wrote " << name << '\n';
    return to_int(ExitCode::Done);
  };
  int code = to_int(ExitCode::Done);
  const bool infeasible = report.planned && report.planned->plan.outcome == Outcome::Infeasible;
  if (prepared.plan && !infeasible) {
    code = write(*prepared.plan, options.out, [&](std::ostream& out) { plan::write_plan(*report.planned, out); });
  }
  if (prepared.page && code == to_int(ExitCode::Done)) {
    code = write(*prepared.page, options.html, [&](std::ostream& out) { report::write_html(report, out); });
  }
  return code == to_int(ExitCode::Done) && infeasible ? to_int(ExitCode::Infeasible) : code;
}

Result<std::vector<trace::TraceFile>> read_traces(const PlanOptions& options) {
  std::vector<trace::TraceFile> traces;
  for (const std::string& file : options.files) {
    ULLAGE_TRY_VALUE(const read::FileContent content, read::FileContent::open(file));
    ULLAGE_TRY_VALUE(trace::TraceFile trace, trace::read_trace_file(content.bytes(), file));
    traces.push_back(std::move(trace));
  }
  return traces;
}

// BadArgument if the recordings cannot be planned together as the options ask.
Status go_together(const PlanOptions& options, const std::vector<trace::TraceFile>& traces) {
  const std::string& device = traces.front().device;
  if (device != "cpu" && options.memory == "auto")
    return wrong("auto is what this machine gives; state the bytes of " + device, "--memory");
  for (std::size_t i = 1; i < traces.size(); ++i) {
    if (traces[i].device != device)
      return wrong(options.files[i] + " was recorded on " + traces[i].device + ", " + options.files.front() + " on " +
                       device + "; compare recordings of one device",
                   "");
  }
  return success();
}

// Plans each recording and returns the report of the chosen one, with the rows of all.
Result<report::PlanReport> compared_report(const PlanOptions& options, std::vector<trace::TraceFile> traces,
                                           const AskedPlan& asked, Progress& progress) {
  std::vector<report::PlanReport> reports;
  std::vector<report::ComparedWay> ways;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    ULLAGE_TRY_VALUE(report::PlanReport one, make_plan_report(traces[i], asked.question, options.files[i], progress));
    ways.push_back(way_of(one, traces[i].changes));
    reports.push_back(std::move(one));
  }
  report::PlanReport chosen = std::move(reports[choose(ways, *asked.allowed)]);
  chosen.ways = std::move(ways);
  return chosen;
}

}  // namespace

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* verb = app.add_subcommand("plan", "say how a recorded program fits into stated bytes, and at what cost");
  set_usage(*verb, "ullage plan [OPTIONS] FILE.ullage...");
  verb->group("Verbs");
  // gather_words collects the files; this option only makes the help text list them.
  verb->add_option(
          "FILE", [](const CLI::results_t&) { return true; },
          "a trace of 'ullage run --record', two whole steps or more")
      ->type_name("");
  verb->add_option("--memory", options.memory,
                   "bytes for the whole process, as for run; auto: what this machine gives,\nless 5 %")
      ->type_name("SIZE|auto");
  verb->add_flag("--curve", options.curve, "also show budget against time; without --memory, show only that");
  verb->add_option("--levers", options.levers,
                   "what a plan may do (docs/plan.md); default: all of these:\n" + plan::lever_words())
      ->type_name("A,B,...");
  verb->add_option("--allow", options.allow,
                   "compare recordings of one program, of which some change its results, and\n"
                   "choose the cheapest: rounding, different, or both; default: one FILE")
      ->type_name("A,B,...");
  verb->add_option("--step", options.step, "the step to plan, from 1; default: a typical one")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000).description(""));
  verb->add_option("--rate", options.rate,
                   "bytes a second to the disk, and from it; one SIZE: both; default: they are\n"
                   "measured; for a trace made on a card: to locked memory, and from it;\n"
                   "default: 12 GB")
      ->type_name("OUT[,BACK]");
  verb->add_option("--seed", options.seed, "the seed of the search; default: 1")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000).description(""));
  verb->add_option("--effort", options.effort,
                   "how long to search at most, in millions of simulated ops; default: " +
                       std::to_string(plan::Ask{}.effort / 1'000'000))
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
  verb->add_option("--top", options.top, "how many sites to name; default: 10")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
  verb->add_option("--out", options.out, "also write the plan, for 'ullage run --plan'")->type_name("PLAN");
  verb->add_flag("--json", options.json, "the answer as JSON (docs/cli.md)");
  verb->add_option("--html", options.html, "also write a page with the timeline before and after, for a browser")
      ->type_name("OUT");
  verb->footer(
      "Exit code: 0 the answer is on stdout; 2 wrong use; 3 FILE cannot be read, is damaged, or has no\n"
      "step that can be planned; 4 no plan keeps to the memory.");
  return verb;
}

int run_plan(const PlanOptions& options, Streams streams) {
  if (options.files.empty() || (options.files.size() > 1 && !options.allow)) {
    return refuse({to_int(ExitCode::WrongUse),
                   options.files.empty() ? "nothing to plan: name a trace of 'ullage run --record'"
                                         : "plan takes one file, there are " + std::to_string(options.files.size()) +
                                               "; with --allow it compares several recordings of one program"},
                  "plan", streams.err);
  }
  const Result<PlanFiles> prepared = prepare_plan_files(options);
  if (!prepared) return refuse({to_int(ExitCode::WrongUse), prepared.error().text()}, "plan", streams.err);
  Result<AskedPlan> asked = read_question(options);
  if (!asked) return refuse({to_int(ExitCode::WrongUse), asked.error().text()}, "plan", streams.err);
  Result<std::vector<trace::TraceFile>> traces = read_traces(options);
  if (!traces) return refuse({to_int(ExitCode::BadInput), traces.error().text()}, "plan", streams.err);
  if (const Status fit = go_together(options, *traces); !fit)
    return refuse({to_int(ExitCode::WrongUse), fit.error().text()}, "plan", streams.err);
  if (!options.rate) add_rates(asked->question, traces->front().device, streams.err);
  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  const auto report =
      asked->allowed ? compared_report(options, std::move(*traces), *asked, progress)
                     : make_plan_report(std::move(traces->front()), asked->question, options.files.front(), progress);
  progress.pause();
  if (!report) {
    const bool use = report.error().kind == Error::Kind::BadArgument;
    return refuse({to_int(use ? ExitCode::WrongUse : ExitCode::BadInput), report.error().text()}, "plan", streams.err);
  }
  if (report->ways.size() == 1) {
    streams.err << "ullage: note: --allow compares recordings, and there is one; record the program with the change "
                   "too, as in 'ullage run --allow bf16 --record bf16.ullage -- COMMAND', and name both files\n";
  }
  answer(options, *report, streams.out);
  return write_files(options, *prepared, *report, streams.err);
}

}  // namespace ullage::cli
