// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/run_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/programs.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"
#include "ullage/store/spill_folder.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

// A line on stderr and the exit code that goes with it.
struct Refusal {
  int exit_code = to_int(ExitCode::WrongUse);
  std::string message;
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string programs_here() {
  const std::vector<std::string> names = shipped_programs(own_folder());
  return names.empty() ? "no programs stand beside ullage" : "programs here: " + joined(names);
}

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
}

std::variant<Launch, Refusal> command_of(const RunOptions& options) {
  const std::vector<std::string> words(options.target.begin() + 1, options.target.end());
  if (words.empty()) return Refusal{to_int(ExitCode::WrongUse), "no command behind '--'"};
  FoundCommand found = find_command(words.front(), search_path());
  if (found.exit_code != 0) return Refusal{found.exit_code, found.message};
  return Launch{found.file, words, options.roots, ""};
}

std::variant<Launch, Refusal> shipped_program_of(const RunOptions& options) {
  const std::string& name = options.target.front();
  const std::filesystem::path file = own_folder() / ("ullage-" + name);
  if (name.find('/') == std::string::npos && find_command(file.string(), "").exit_code == 0) {
    Launch launch{file, options.target, options.roots, ""};
    launch.words.front() = "ullage-" + name;
    return launch;
  }
  std::string message = "unknown program '" + name + "'" + suggestion(name, shipped_programs(own_folder())) + " (" +
                        programs_here() + ")";
  if (find_command(name, search_path()).exit_code == 0)
    message += "; for the command of that name write: ullage run -- " + name;
  return Refusal{to_int(ExitCode::WrongUse), message};
}

std::variant<Launch, Refusal> find_target(const RunOptions& options) {
  if (options.target.empty()) {
    return Refusal{to_int(ExitCode::WrongUse),
                   "nothing to run: name a program, or write '--' and a command (" + programs_here() + ")"};
  }
  return options.target.front() == "--" ? command_of(options) : shipped_program_of(options);
}

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

std::string preload_of(std::ostream& err) {
  const Result<std::filesystem::path> library = find_preload(own_folder());
  if (library) return library->string();
  err << "ullage: warning: " << library.error().text() << '\n';
  return "";
}

int refuse(const Refusal& refusal, std::ostream& err) {
  err << "ullage: " << refusal.message << '\n';
  if (refusal.exit_code == to_int(ExitCode::WrongUse)) err << "ullage: see 'ullage help run'\n";
  return refusal.exit_code;
}

Refusal not_started(const Launch& launch, int reason) {
  return {reason == ENOENT ? 127 : 126, launch.file.string() + ": cannot be started: " + std::strerror(reason)};
}

// Writes what there is to tell; the exit code is the command's unless only Ullage failed.
int tell(const report::RunReport& report, const std::optional<ReportFile>& file, bool quiet, std::ostream& err) {
  int exit_code = report.end.exit_code;
  if (file) {
    if (const Status written = file->write(report); !written) {
      err << "ullage: " << written.error().text() << '\n';
      if (exit_code == 0) exit_code = to_int(ExitCode::Failed);
    }
  }
  if (!quiet) report::write_summary(report, err);
  err.flush();
  return exit_code;
}

}  // namespace

const std::vector<std::string>& later_run_options() {
  static const std::vector<std::string> later = {"--plan", "--record", "--allow"};
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
  const Result<Bytes> budget = budget_of(options, streams.err);
  if (!budget) return refuse({to_int(ExitCode::WrongUse), budget.error().text()}, streams.err);
  const Result<store::SpillPlace> spill = spill_place_of(options, streams.err);
  if (!spill) return refuse({to_int(ExitCode::WrongUse), spill.error().text()}, streams.err);
  std::optional<ReportFile> file;
  if (!options.report.empty()) {
    Result<ReportFile> prepared = ReportFile::prepare(options.report);
    if (!prepared) return refuse({to_int(ExitCode::WrongUse), prepared.error().text()}, streams.err);
    file = *prepared;
  }
  std::variant<Launch, Refusal> target = find_target(options);
  if (const auto* refusal = std::get_if<Refusal>(&target)) return refuse(*refusal, streams.err);
  Launch& program = std::get<Launch>(target);
  program.preload = preload_of(streams.err);

  const Result<store::Ledger> ledger = store::Ledger::create({*budget, spill->folder, spill->most});
  if (!ledger) {
    const bool wrong = ledger.error().kind == Error::Kind::BadArgument;
    return refuse({to_int(wrong ? ExitCode::WrongUse : ExitCode::Failed), ledger.error().text()}, streams.err);
  }
  streams.err.flush();
  SignalForwarder signals;  // outlives the program: a late Ctrl-C does not take the summary away
  auto ended = launch(program, *ledger, signals);
  std::signal(SIGPIPE, SIG_IGN);  // a reader of stderr that went away does not change the exit code
  if (const auto* failure = std::get_if<NotStarted>(&ended)) {
    return refuse(not_started(program, failure->reason), streams.err);
  }
  auto& end = std::get<report::ProcessEnd>(ended);
  end.target = options.target;
  if (file) end.report_file = options.report;
  return tell(report::summarize(ledger->page(), end), file, options.quiet, streams.err);
}

}  // namespace ullage::cli
