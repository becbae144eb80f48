// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/run_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/target.h"
#include "ullage/cli/usage.h"
#include "ullage/store/spill_folder.h"

#include <csignal>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

// Zero: unlimited.
Result<Bytes> budget_of(const RunOptions& options, std::ostream& err) {
  const MachineMemory memory = read_machine_memory(options.roots);
  if (options.memory == "auto") return auto_budget(memory);
  Result<Bytes> stated = parse_bytes(options.memory);
  if (!stated) return Error{stated.error().kind, stated.error().message, "--memory"};
  if (*stated == Bytes{}) return Error{Error::Kind::BadArgument, "0 bytes are no budget", "--memory"};
  if (const auto most = most_there_is(memory); most && *stated > *most) {
    err << "ullage: warning: the budget of " << to_string(*stated) << " is more than the " << to_string(*most)
        << " that this machine gives; the kernel may kill the program below it\n";
  }
  return stated;
}

// Where tensors go that do not fit. What the person named must do; where nothing was named a lack is only told, as the
// run may fit without.
Result<store::SpillPlace> spill_place_of(const RunOptions& options, std::ostream& err) {
  if (options.spill == "none") return store::SpillPlace{};
  if (options.spill) {
    Result<store::SpillPlace> stated = store::find_spill_place(*options.spill);
    if (stated) return stated;
    const Error& error = stated.error();
    return Error{error.kind, error.where == "--spill" ? error.message : error.text(), "--spill"};
  }
  Result<store::SpillPlace> place = store::default_spill_place();
  if (place) return place;
  err << "ullage: warning: " << place.error().text() << "; nothing can be moved out of memory\n";
  return store::SpillPlace{};
}

// The files that were asked for, tried before the program starts.
struct Files {
  std::optional<ReportFile> report, trace;
};

Result<Files> prepare_files(const RunOptions& options) {
  Files files;
  if (!options.report.empty()) {
    Result<ReportFile> report = ReportFile::prepare(options.report);
    if (!report) return report.error();
    files.report = *report;
  }
  if (!options.record) return files;
  Result<ReportFile> trace = ReportFile::prepare(*options.record, "the trace", "--record");
  if (!trace) return trace.error();
  if (files.report && files.report->path() == trace->path()) {
    return Error{Error::Kind::BadArgument, "the trace and the report cannot be one file", "--record"};
  }
  files.trace = *trace;
  return files;
}

// Why the trace that was asked for is not there.
std::string no_trace(const report::RunReport& report) {
  const std::string file = *report.end.record_file + ": the trace was not written";
  if (!report.attached) return file + ": Ullage's runtime was in no process of the program";
  return report.message.empty() ? file : file + ": " + report.message;
}

// Writes what there is to tell; the exit code is the command's unless only Ullage failed.
int tell(const report::RunReport& report, const Files& files, bool quiet, std::ostream& err) {
  int exit_code = report.end.exit_code;
  const auto failed = [&](const std::string& message) {
    err << "ullage: " << message << '\n';
    if (exit_code == 0) exit_code = to_int(ExitCode::Failed);
  };
  if (files.report) {
    if (const Status written = files.report->write(report); !written) failed(written.error().text());
  }
  if (files.trace && !report.recorded) failed(no_trace(report));
  if (!quiet) report::write_summary(report, err);
  err.flush();
  return exit_code;
}

}  // namespace

const std::vector<std::string>& later_run_options() {
  static const std::vector<std::string> later = {"--plan", "--allow"};
  return later;
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* verb = app.add_subcommand("run", "run a program under a budget of bytes");
  set_usage(*verb, "ullage run [OPTIONS] PROGRAM [ARGS...]\n       ullage run [OPTIONS] -- COMMAND [ARGS...]");
  verb->group("Verbs");
  verb->add_option("--memory", options.memory,
                   "bytes for the whole process: 900MiB, 1.5GiB, 2GB, 4096;\nauto, as without it: what the machine "
                   "gives, less 5 %")
      ->type_name("SIZE|auto");
  verb->add_option("--spill", options.spill,
                   "where tensors go that do not fit, and how many bytes at most;\nwithout it: a temporary folder, as "
                   "an unnamed file; none: nothing is\nmoved, and what does not fit is refused")
      ->type_name("DIR[:SIZE]|none");
  verb->add_option("--report", options.report, "write the figures of the run as JSON")->type_name("FILE");
  verb->add_option("--record", options.record,
                   "write what the program did with its memory: a trace for\n'ullage explain' and 'ullage predict'")
      ->type_name("FILE");
  verb->add_flag("--quiet", options.quiet, "no summary at the end");
  verb->footer(
      "Options stand before PROGRAM or '--'; all behind belongs to the program, its --help too.\n"
      "COMMAND keeps the budget if it is linked to torch, or to Ullage's runtime. Exit code: the\n"
      "command's own, 128+n for signal n; 2 wrong use; 4 the budget cannot be met; 126, 127 cannot\n"
      "be started.\n(" +
      programs_here() + ")");
  return verb;
}

int run_run(const RunOptions& options, Streams streams) {
  const auto wrong = [&](const Error& error) {
    return refuse({to_int(ExitCode::WrongUse), error.text()}, "run", streams.err);
  };
  const Result<Bytes> budget = budget_of(options, streams.err);
  if (!budget) return wrong(budget.error());
  const Result<store::SpillPlace> spill = spill_place_of(options, streams.err);
  if (!spill) return wrong(spill.error());
  const Result<Files> files = prepare_files(options);
  if (!files) return wrong(files.error());
  std::variant<Launch, Refusal> target = find_target(options.target, "run");
  if (const auto* refusal = std::get_if<Refusal>(&target)) return refuse(*refusal, "run", streams.err);
  Launch& program = std::get<Launch>(target);
  program.roots = options.roots;
  program.preload = preload_of(streams.err);

  store::LedgerSettings settings{*budget, spill->folder, spill->most, {}, 0, {}};
  if (files->trace) settings.record_file = files->trace->path().string();
  const Result<store::Ledger> ledger = store::Ledger::create(settings);
  if (!ledger && ledger.error().kind == Error::Kind::BadArgument) return wrong(ledger.error());
  if (!ledger) return refuse({to_int(ExitCode::Failed), ledger.error().text()}, "run", streams.err);
  streams.err.flush();
  SignalForwarder signals;  // outlives the program: a late Ctrl-C does not take the summary away
  auto ended = launch(program, *ledger, signals);
  std::signal(SIGPIPE, SIG_IGN);  // a reader of stderr that went away does not change the exit code
  if (const auto* failure = std::get_if<NotStarted>(&ended)) {
    return refuse(not_started(program, failure->reason), "run", streams.err);
  }
  auto& end = std::get<report::ProcessEnd>(ended);
  end.target = options.target;
  if (files->report) end.report_file = options.report;
  if (files->trace) end.record_file = *options.record;
  return tell(report::summarize(ledger->page(), end), *files, options.quiet, streams.err);
}

}  // namespace ullage::cli
