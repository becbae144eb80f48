// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/run_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/allowance.h"
#include "ullage/cli/dry_command.h"
#include "ullage/cli/dry_run.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/recorded_program.h"
#include "ullage/cli/report_file.h"
#include "ullage/cli/switches.h"
#include "ullage/cli/target.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/way_search.h"
#include "ullage/plan/file/plan_file.h"
#include "ullage/read/file/file_content.h"
#include "ullage/report/plan_words.h"
#include "ullage/store/spill_folder.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>

namespace ullage::cli {
namespace {

// How many bytes the program may hold, and on which device.
struct Room {
  std::optional<unsigned> card;  // none: the process's memory
  Bytes budget;                  // zero: unlimited; on a card: what is free there, less 5 %
  Bytes host_memory;             // most locked memory for tensors evicted from the card
};

constexpr unsigned kMostCards = 128;  // torch numbers cards in a signed byte

// Returns the number of the card; nothing for "cpu".
Result<std::optional<unsigned>> run_card(const std::string& device) {
  if (device == "cpu") return std::optional<unsigned>();
  if (device == "cuda") return std::optional(0u);
  const std::string number = device.starts_with("cuda:") ? device.substr(5) : "";
  unsigned card = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), card);
  if (error == std::errc{} && *rest == '\0' && card < kMostCards) return std::optional(card);
  return Error{
      Error::Kind::BadArgument,
      "'" + device + "' is not a device: cpu, cuda, or cuda:N with the card's number; --memory states its bytes",
      "--device"};
}

Result<Bytes> size_of(const std::string& text, const std::string& option) {
  Result<Bytes> size = parse_bytes(text);
  if (!size) return Error{size.error().kind, size.error().message, option};
  return size;
}

// Returns the most locked memory for tensors evicted from the card. The default is half of the machine's memory: the
// program and others need the rest, and locked memory cannot be taken back.
Result<Bytes> host_memory_of(const RunOptions& options, const MachineMemory& machine) {
  if (!options.host_memory) return most_there_is(machine).value_or(Bytes{}) / 2;
  if (options.host_memory == "none") return Bytes{};
  return size_of(*options.host_memory, "--host-memory");
}

Result<Bytes> budget_of(const RunOptions& options, const MachineMemory& machine, bool of_card, std::ostream& err) {
  if (options.memory == "auto") return of_card ? Bytes{} : auto_budget(machine);
  ULLAGE_TRY_VALUE(Bytes stated, size_of(options.memory, "--memory"));
  if (stated == Bytes{})
    return Error{Error::Kind::BadArgument, "0 bytes were stated; give a size above 0, such as 4GiB", "--memory"};
  if (const auto most = most_there_is(machine); most && stated > *most && !of_card) {
    err << "ullage: warning: the budget of " << to_string(stated) << " is more than the " << to_string(*most)
        << " that this machine gives; the kernel may kill the program before the budget is reached\n";
  }
  return stated;
}

// A dry run's card is made, not found, so a budget above its memory is a mistake.
Result<Room> room_of(const RunOptions& options, const DryCard& card) {
  ULLAGE_TRY_VALUE(const Bytes budget, size_of(options.memory, "--memory"));
  if (budget == Bytes{})
    return Error{Error::Kind::BadArgument, "0 bytes were stated; give a size above 0, such as 4GiB", "--memory"};
  const Bytes memory{card.model.total};
  if (budget > memory) {
    return Error{Error::Kind::BadArgument,
                 to_string(budget) + " are more than the " + to_string(memory) + " of the card", "--memory"};
  }
  if (!options.host_memory) return Room{0u, budget, kHostOfDryCard};
  ULLAGE_TRY_VALUE(const Bytes host_memory, host_memory_of(options, {}));
  return Room{0u, budget, host_memory};
}

Result<Room> room_of(const RunOptions& options, std::ostream& err) {
  ULLAGE_TRY_VALUE(const std::optional<unsigned> card, run_card(options.device));
  const bool of_card = card.has_value();
  if (!of_card && options.host_memory) {
    return Error{Error::Kind::BadArgument, "is for tensors evicted from a card; add --device cuda, or leave it out",
                 "--host-memory"};
  }
  const MachineMemory machine = read_machine_memory(options.roots);
  ULLAGE_TRY_VALUE(const Bytes host_memory, of_card ? host_memory_of(options, machine) : Bytes{});
  ULLAGE_TRY_VALUE(const Bytes budget, budget_of(options, machine, of_card, err));
  return Room{card, budget, host_memory};
}

// Returns where tensors go that do not fit (with a card: those that do not fit its host memory either). A folder that
// the person named must be usable. If none was named and no default is usable, only a warning is written, because the
// run may fit without spilling.
Result<store::SpillPlace> spill_place_of(const RunOptions& options, const Room& room, std::ostream& err) {
  if (options.spill == "none" || (options.dry && !options.spill)) return store::SpillPlace{};
  if (options.spill) {
    Result<store::SpillPlace> stated = store::find_spill_place(*options.spill);
    if (stated) return stated;
    const Error& error = stated.error();
    return Error{error.kind, error.where == "--spill" ? error.message : error.text(), "--spill"};
  }
  Result<store::SpillPlace> place = store::default_spill_place();
  if (place) return place;
  const char* from = !room.card ? "memory" : room.host_memory > Bytes{} ? "host memory" : "the card";
  err << "ullage: warning: " << place.error().text() << "; nothing can be moved out of " << from << '\n';
  return store::SpillPlace{};
}

// The files that were asked for, checked before the program starts.
struct Files {
  std::optional<ReportFile> report, trace;
};

Result<Files> prepare_files(const RunOptions& options) {
  Files files;
  if (!options.report.empty()) {
    ULLAGE_TRY_VALUE(files.report, ReportFile::prepare(options.report));
  }
  if (!options.record) return files;
  ULLAGE_TRY_VALUE(ReportFile trace, ReportFile::prepare(*options.record, "the trace", "--record"));
  if (files.report && files.report->path() == trace.path()) {
    return Error{Error::Kind::BadArgument, "the trace and the report cannot be one file", "--record"};
  }
  files.trace = trace;
  return files;
}

// Checks the plan that --plan names, before the program starts. Returns its absolute path; empty without --plan.
std::variant<std::string, Refusal> plan_of(const RunOptions& options, const Room& room, std::ostream& err) {
  if (!options.plan) return "";
  const auto refused = [](ExitCode code, const std::string& message) {
    return Refusal{to_int(code), "--plan: " + message};
  };
  if (options.no_plan) return refused(ExitCode::WrongUse, "does not go together with --no-plan");
  const Result<read::FileContent> content = read::FileContent::open(*options.plan);
  if (!content) return refused(ExitCode::BadInput, content.error().text());
  const std::span<const std::byte> bytes = content->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<plan::PlanFile> file = plan::read_plan(text, *options.plan);
  if (!file) return refused(ExitCode::BadInput, file.error().text());
  if (file->plan.outcome == plan::Plan::Outcome::Infeasible) {
    return refused(ExitCode::Infeasible, *options.plan + ": it says that no plan keeps to its budget");
  }
  const std::string device = room.card ? "cuda:" + std::to_string(*room.card) : "cpu";
  if (file->device != device) {
    return refused(ExitCode::WrongUse,
                   "the plan is for bytes on " + file->device + ", the budget for bytes on " + device);
  }
  if (room.budget > Bytes{} && file->memory > room.budget) {
    err << "ullage: warning: the plan is for " << with_count(file->memory) << ", the budget is "
        << with_count(room.budget) << "; what does not fit is decided on demand\n";
  }
  return std::filesystem::absolute(*options.plan).string();
}

// What --allow allows, and how it is done: switches in a Python program, or another way to run a shipped program.
struct Allowed {
  Allowance allowance;
  std::optional<Switches> switches;
  std::filesystem::path facts;  // the folder that gets the facts of the run; empty without switches
  std::vector<report::ComparedWay> ways;
  std::vector<std::string> target;  // of the chosen way; empty: as typed
};

// BadArgument if the value of --allow cannot be read, or does not go together with another option.
Result<Allowance> allowance_of(const RunOptions& options, const Room& room) {
  const bool shipped = options.target.front() != "--";
  ULLAGE_TRY_VALUE(Allowance allowance, parse_allowance(*options.allow));
  if (shipped && allowance.names_classes() && room.card)
    return Error{Error::Kind::BadArgument,
                 "classes of changes are for Python programs, and for shipped programs on the CPU", "--allow"};
  if (!shipped) {
    ULLAGE_TRY_VALUE(allowance, for_python(allowance));
  }
  if ((allowance.if_needed || allowance.names_classes()) && (options.plan || options.no_plan)) {
    return Error{Error::Kind::BadArgument,
                 "if-needed, rounding and different depend on a plan that Ullage makes, so they do not go together "
                 "with --plan or --no-plan",
                 "--allow"};
  }
  return allowance;
}

// Chooses how the shipped program runs, and adds the options to `program`. If its needs cannot be predicted, writes why
// and leaves it as it is. Returns a failure if a signal came.
std::optional<Failure> choose_way(const RunOptions& options, const Room& room, const store::SpillPlace& spill,
                                  Launch& program, Allowed& allowed, std::ostream& err) {
  if (room.budget == Bytes{}) return std::nullopt;  // unlimited: it fits as it is
  const Bytes machine = auto_budget(read_machine_memory(options.roots));
  const Bytes budget = machine > Bytes{} ? std::min(machine, room.budget) : room.budget;
  Progress progress(err, ::isatty(STDERR_FILENO) != 0);
  RecordedRehearsal rehearsal(TakeRunner(program, budget, spill, true, progress), program.words);
  auto found = search_ways(rehearsal, program.words, allowed.allowance.classes(), room.budget, progress, err);
  progress.pause();
  if (auto* failure = std::get_if<Failure>(&found)) {
    if (failure->lines.empty()) return std::move(*failure);
    for (const std::string& line : failure->lines) err << "ullage: " << line << '\n';
    err << "ullage: --allow: what the program needs could not be predicted; it runs as it is\n";
    return std::nullopt;
  }
  auto& ways = std::get<WaysFound>(found);
  // The name of a program is not the name of its file.
  allowed.target = ways.words, allowed.target.front() = options.target.front();
  allowed.ways = std::move(ways.ways), program.words = std::move(ways.words);
  const std::string chosen = report::choice_text(allowed.ways);
  if (chosen.empty()) {
    err << "ullage: --allow: nothing that is allowed is predicted to fit; the program runs as it is\n";
  } else if (!options.quiet) {
    err << "ullage: --allow chose " << chosen << '\n';
  }
  return std::nullopt;
}

// Switches on in `program` what --allow allows, or chooses the way in which a shipped program runs. Without --allow,
// changes nothing and returns nothing.
std::variant<std::optional<Allowed>, Refusal, Failure> allowed_for(const RunOptions& options, const Room& room,
                                                                   const store::SpillPlace& spill, Launch& program,
                                                                   std::ostream& err) {
  if (!options.allow) return std::optional<Allowed>();
  const auto refused = [](ExitCode code, const Error& error) { return Refusal{to_int(code), error.text()}; };
  const Result<Allowance> allowance = allowance_of(options, room);
  if (!allowance) return refused(ExitCode::WrongUse, allowance.error());
  Allowed allowed{*allowance, {}, {}, {}, {}};
  if (options.target.front() != "--" && allowance->names_classes()) {
    if (auto stopped = choose_way(options, room, spill, program, allowed, err)) return std::move(*stopped);
    return std::optional(std::move(allowed));
  }
  if (const Status takes = takes_switches(program, options.target); !takes)
    return refused(ExitCode::WrongUse, takes.error());
  Result<ScratchFolder> scratch = ScratchFolder::make();
  if (!scratch) return refused(ExitCode::Failed, scratch.error());
  allowed.switches.emplace(std::move(scratch).value());
  allowed.facts = allowed.switches->add_to(program, allowance->switches(room.card ? "cuda" : "cpu"));
  return std::optional(std::move(allowed));
}

// Says why the trace that was asked for was not written.
std::string no_trace(const report::RunReport& report) {
  const std::string file = *report.end.record_file + ": the trace was not written";
  if (!report.attached) return file + ": no process of the program loaded Ullage's runtime";
  return report.message.empty() ? file : file + ": " + report.message;
}

// Writes the report and the summary. Returns the command's exit code, or 1 if that is 0 but a file was not written.
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
  const bool not_let_in = report.outcome == report::Outcome::Infeasible && report.refused == 0;
  if (!quiet) report::write_summary(report, err);
  if (quiet && !report.end.allowed.empty() && !report.cast_steps && report.effect == advise::Effect::SameBits)
    err << "ullage: " << report::allowance_line(report) << '\n';
  if (quiet && not_let_in && !report.message.empty()) err << "ullage: " << report.message << '\n';
  err.flush();
  return exit_code;
}

}  // namespace

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* verb = app.add_subcommand("run", "run a program under a budget of bytes");
  set_usage(*verb, "ullage run [OPTIONS] PROGRAM [ARGS...]\n       ullage run [OPTIONS] -- COMMAND [ARGS...]");
  verb->group("Verbs");
  verb->add_option("--memory", options.memory,
                   "bytes for the whole process: 900MiB, 1.5GiB, 2GB, 4096;\nauto (default): what the machine gives, "
                   "or what is free on the card,\nless 5 % in both cases")
      ->type_name("SIZE|auto");
  verb->add_option(
          "--device", options.device,
          "what --memory limits: cpu (default): the process's resident bytes;\ncuda:N: its bytes on card N, as "
          "nvidia-smi shows them; cuda: same as\ncuda:0")
      ->type_name("cpu|cuda[:N]");
  verb->add_flag("--dry", options.dry,
                 "run a CUDA program with no card, to see what it would take of one:\nPyTorch's own CUDA build runs, "
                 "kernels do not; --device is then cuda,\ncuda:SIZE or a card (rtx3090, a100-80gb, ...), followed by "
                 "*2 for two;\n--record keeps torch's memory history for 'ullage explain'. With\n--memory the program "
                 "is held to so many bytes of the card, and --record\nwrites Ullage's trace");
  verb->add_option("--host-memory", options.host_memory,
                   "with --device cuda: how much of the machine's memory may be locked for\ntensors evicted from the "
                   "card; default: half of that memory; none: they\nall go to the folder of --spill")
      ->type_name("SIZE|none");
  verb->add_option("--spill", options.spill,
                   "folder for tensors that do not fit, and how many bytes they may take;\ndefault: an unnamed file "
                   "in a temporary folder; none: nothing is moved,\nand requests that do not fit are refused")
      ->type_name("DIR[:SIZE]|none");
  verb->add_option("--report", options.report, "write the figures of the run as JSON")->type_name("FILE");
  verb->add_option("--record", options.record,
                   "write what the program did with its memory: a trace for\n'ullage explain', 'predict' and 'plan'")
      ->type_name("FILE");
  verb->add_option("--plan", options.plan,
                   "follow a plan of 'ullage plan --out' from the first step on; default:\na plan is made once the "
                   "program nears its limit")
      ->type_name("FILE");
  verb->add_flag("--no-plan", options.no_plan, "make and follow no plan: tensors are evicted on demand");
  verb->add_option("--allow", options.allow,
                   "changes of the results that are allowed; default: not a bit changes.\nbf16: forward passes and "
                   "losses of a Python program run under bf16\nautocast, results differ in rounding; bf16,evaluation: "
                   "also\npasses that no backward pass follows; bf16,if-needed: only while no\nexact plan is "
                   "cheaper; both may stand together. rounding, different\nor both with a comma: Ullage chooses "
                   "changes of that class, if no\nexact way fits or costs little (docs/cli.md)")
      ->type_name("WORDS");
  verb->add_flag("--quiet", options.quiet, "print no summary and nothing about plans; warnings and errors stay");
  verb->footer(
      "Options stand before PROGRAM or '--'; what follows belongs to the program, even --help.\n"
      "COMMAND keeps the budget if it is a Python program that imports torch, or linked to torch or\n"
      "to Ullage's runtime. Exit code: the command's own, 128+n for signal n; 1 the report or\n"
      "trace could not be written; 2 wrong use; 3 the plan cannot be read; 4 the budget cannot be met;\n"
      "126, 127 the command cannot be started.\n(" +
      programs_here() + ")");
  return verb;
}

int run_run(const RunOptions& options, Streams streams) {
  if (options.dry && options.memory == "auto") return run_dry(options, streams);
  const auto wrong = [&](const Error& error) {
    return refuse({to_int(ExitCode::WrongUse), error.text()}, "run", streams.err);
  };
  DryOrder dry{options.device == "cpu" ? "cuda" : options.device};
  if (options.dry) {
    const Result<DryCard> card = read_dry_card(dry.device);
    if (!card) return wrong(card.error());
    dry.card = *card, dry.has_budget = true;
  }
  const Result<Room> room = options.dry ? room_of(options, dry.card) : room_of(options, streams.err);
  if (!room) return wrong(room.error());
  const Result<store::SpillPlace> spill = spill_place_of(options, *room, streams.err);
  if (!spill) return wrong(spill.error());
  const Result<Files> files = prepare_files(options);
  if (!files) return wrong(files.error());
  const std::variant<std::string, Refusal> plan = plan_of(options, *room, streams.err);
  if (const auto* refusal = std::get_if<Refusal>(&plan)) return refuse(*refusal, "run", streams.err);
  std::variant<Launch, Refusal> target = find_target(options.target, "run");
  if (const auto* refusal = std::get_if<Refusal>(&target)) return refuse(*refusal, "run", streams.err);
  Launch& program = std::get<Launch>(target);
  program.roots = options.roots;
  std::optional<DryRunner> dry_runner;
  DryAccount card_account;
  if (options.dry) {
    Result<DryRunner> made = DryRunner::make(program);
    Result<DryAccount> put = made ? made->put_under(program, dry) : made.error();
    if (!put) return refuse_dry(put.error(), "run", streams.err);
    card_account = std::move(*put);
    dry_runner.emplace(std::move(*made));
  } else {
    program.preload = preload_of(streams.err);
  }
  auto allowing = allowed_for(options, *room, *spill, program, streams.err);
  if (const auto* refusal = std::get_if<Refusal>(&allowing)) return refuse(*refusal, "run", streams.err);
  if (const auto* stopped = std::get_if<Failure>(&allowing)) return stopped->exit_code;
  const auto& allowed = std::get<std::optional<Allowed>>(allowing);

  // If no budget is stated, a recording has the memory of the program as it is.
  if (options.memory != "auto" || !files->trace) program.environment.push_back(kDeferCompiler);

  store::LedgerSettings settings{room->budget, spill->folder, spill->most};
  settings.card = room->card, settings.host_memory = room->host_memory;
  if (files->trace) settings.record_file = files->trace->path().string();
  settings.plan_file = std::get<std::string>(plan), settings.no_plan = options.no_plan;
  settings.quiet = options.quiet;
  settings.counts_half = allowed && allowed->switches;
  settings.casts_if_needed = allowed && allowed->allowance.if_needed;
  Result<store::Ledger> ledger = store::Ledger::create(settings);
  if (!ledger && ledger.error().kind == Error::Kind::BadArgument) return wrong(ledger.error());
  if (!ledger) return refuse({to_int(ExitCode::Failed), ledger.error().text()}, "run", streams.err);
  streams.err.flush();
  SignalForwarder signals;  // outlives the program, so that a late Ctrl-C does not lose the summary
  auto ended = launch(program, *ledger, signals);
  std::signal(SIGPIPE, SIG_IGN);  // a reader of stderr that has gone must not change the exit code
  if (const auto* failure = std::get_if<NotStarted>(&ended)) {
    return refuse(not_started(program, failure->reason), "run", streams.err);
  }
  auto& end = std::get<report::ProcessEnd>(ended);
  end.target = options.target;
  if (files->report) end.report_file = options.report;
  if (files->trace) end.record_file = *options.record;
  if (dry_runner) {
    end.dry = DryRunner::count(dry, card_account);
    say_host_filled(card_account.host_filled(), streams.err);
  }
  if (allowed) {
    end.allowed = allowed->allowance.words(), end.ways = allowed->ways;
    if (allowed->switches) end.facts = advise::read_facts(allowed->facts);
    if (!allowed->target.empty()) end.target = allowed->target;
  }
  return tell(report::summarize(ledger->page(), end), *files, options.quiet, streams.err);
}

}  // namespace ullage::cli
