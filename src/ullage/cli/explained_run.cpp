// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/explained_run.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/replace_file.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/explain_files.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/output_copy.h"
#include "ullage/cli/take_runner.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/watch_script.h"
#include "ullage/cli/words.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/read/input.h"
#include "ullage/read/log/log.h"
#include "ullage/report/command_text.h"
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/run_report.h"
#include "ullage/store/ledger.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using trace::OutOfMemory;

constexpr int kKilled = 128 + SIGKILL;
constexpr std::size_t kLinesBefore = 20;  // before the end of the output, as many as OutOfMemory::before has at most
constexpr double kLikely = 0.5;  // confidence from which a message's cause is shown although there is a snapshot

// ---- what is written if memory runs out

bool can_write(const fs::path& folder) { return ::access(folder.c_str(), W_OK | X_OK) == 0; }

// Returns the folder for the snapshot and the log, as an absolute path. It need not be there yet: nothing is made
// before something fails. BadArgument if a folder that was named cannot be made or written. If none was named and this
// folder cannot be written, returns the temporary folder.
Result<fs::path> folder_of(const ExplainOptions& options) {
  const char* variable = std::getenv("ULLAGE_EXPLAIN");
  const bool stated = options.keep || (variable != nullptr && *variable != '\0');
  std::error_code failed;
  const std::string name = options.keep ? *options.keep : std::string(stated ? variable : ".");
  const fs::path folder = fs::absolute(name, failed).lexically_normal();
  fs::path there = folder;
  while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  if (fs::is_directory(there, failed) && can_write(there)) return folder;
  if (!stated) return fs::temp_directory_path(failed);
  const char* what = fs::is_directory(there, failed) ? "cannot be written" : "is not a folder";
  return wrong(there.string() + ": " + what, options.keep ? "--keep" : "ULLAGE_EXPLAIN");
}

// Returns the name as a person here would type it.
std::string typed(const fs::path& path) {
  std::error_code failed;
  const fs::path here = path.lexically_proximate(fs::current_path(failed));
  return failed || here.empty() || *here.begin() == ".." ? path.string() : here.string();
}

// The log has the name of the snapshot that is explained, if there is one.
fs::path log_file(const fs::path& folder, const fs::path& snapshot) {
  if (!snapshot.empty()) return fs::path(snapshot).replace_extension(".log");
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string name(host);
  return folder / fmt::format("oom-{}-{}.log", name.substr(0, name.find('.')), ::getpid());
}

// ---- what was seen

// What _watch.py wrote about one process in which a card refused requests.
struct Refusals {
  fs::path snapshot;  // empty: it could not be written
  std::uint64_t count = 0;
  bool uncaught = false;
  double time = 0;  // of the last one
  unsigned device = 0;
  Bytes requested;
};

// Returns the refusals of all processes. Processes that an error ended come before those that went on. Of each kind the
// earlier come first: if one process of a distributed program fails, the others fail later because they miss it.
std::vector<Refusals> read_refusals(const fs::path& account) {
  std::vector<Refusals> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(account)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    Refusals one;
    if (const auto file = json.find("snapshot"); file != json.end() && file->is_string())
      one.snapshot = file->get<std::string>();
    one.count = json.value("failures", std::uint64_t{0}), one.uncaught = json.value("uncaught", false);
    one.time = json.value("time", 0.0), one.device = json.value("device", 0u);
    one.requested = Bytes{json.value("requested", std::uint64_t{0})};
    all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const Refusals& a, const Refusals& b) {
    return a.uncaught != b.uncaught ? a.uncaught : a.time < b.time;
  });
  return all;
}

// How much of this machine's memory the command used.
struct HostUse {
  Bytes held;                 // the most that the command's processes held together, as far as it was seen
  std::optional<Bytes> most;  // the memory that the machine or the control groups give

  std::string text() const {
    const std::string begin = fmt::format("the most it held was {}", to_string(held));
    return most ? fmt::format("{}, the machine gives {}", begin, to_string(*most)) : begin;
  }
};

HostUse host_use(const report::RunReport& run, const MachineMemory& machine) {
  return {run.tree_peak.value_or(run.process_peak), most_there_is(machine)};
}

// The kernel's kill for lack of memory.
struct Kill {
  bool counted = false;  // by a control group or the machine; else concluded from the bytes held
  bool itself = false;   // the command itself; else a process of it
  HostUse use;

  std::string text(const std::string& command) const {
    std::string who = itself ? "the kernel killed " + command : "the kernel killed a process of " + command;
    if (!counted) who = command + " was killed (signal 9), most likely by the kernel";
    return fmt::format("{} for lack of memory; {}", who, use.text());
  }
};

bool speaks_of_a_kill(const trace::Log& log) {
  return std::any_of(log.errors.begin(), log.errors.end(),
                     [](const OutOfMemory& error) { return error.teller == trace::Teller::KernelKill; });
}

// The counts are of control groups that others share. So they are believed only if the command died of signal 9, or its
// output says that one of its processes did.
std::optional<Kill> kill_of(const report::RunReport& run, const MachineMemory& machine, const trace::Log& log) {
  Kill kill;
  kill.itself = run.end.exit_code == kKilled;
  if (!kill.itself && (run.end.exit_code == 0 || !speaks_of_a_kill(log))) return std::nullopt;
  kill.counted = run.end.oom_kills == report::OomKills::Rose;
  kill.use = host_use(run, machine);
  const bool near = kill.itself && kill.use.most && kill.use.held >= *kill.use.most / 4 * 3;
  if (!kill.counted && !near) return std::nullopt;
  return kill;
}

std::vector<std::string> last_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t end = text.size();
  while (end > 0 && lines.size() < kLinesBefore) {
    const std::size_t begin = end < 2 ? std::string::npos : text.rfind('\n', end - 2);
    const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
    lines.push_back(text.substr(from, end - from - (text[end - 1] == '\n' ? 1 : 0)));
    end = from;
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

// Adds the kill to the errors in the output. Where the output speaks of a kill already, in words that leave open who
// sent the signal, it completes that error.
void add_kill(const Kill& kill, const std::string& command, const std::string& output, trace::Log& log) {
  const char* form = kill.counted ? "kernel-counted" : "killed-near-limit";
  for (OutOfMemory& error : log.errors) {
    if (error.teller != trace::Teller::KernelKill) continue;
    const bool open = error.form == "killed" || error.form == "exit-137" || error.form == "signal-9";
    if (open && kill.counted) error.form = form;
    if (!error.process) error.process = kill.use.held;
    return;
  }
  OutOfMemory error;
  error.teller = trace::Teller::KernelKill, error.form = form;
  error.text = kill.text(command);
  error.line = log.lines, error.process = kill.use.held;
  error.before = last_lines(output);
  log.errors.push_back(std::move(error));
}

// ---- the run

struct Watched {
  report::RunReport run;
  std::string output;
  std::vector<Refusals> refusals;
  MachineMemory machine;  // as it was before
};

Status put(const fs::path& file, std::string_view text) {
  return replace_file(file.string(), [&](std::ostream& out) {
    out << text;
    return success();
  });
}

std::variant<Watched, Refusal> watch(Launch program, const fs::path& folder, const ExplainOptions& options,
                                     SignalForwarder& signals, std::ostream& err) {
  const auto failed = [](const Error& error) { return Refusal{to_int(ExitCode::Failed), error.text()}; };
  const Result<ScratchFolder> scratch = ScratchFolder::make();
  if (!scratch) return failed(scratch.error());
  const fs::path script = scratch->path() / "watch.py", account = scratch->path() / "account";
  if (const Status written = put(script, kWatchScript); !written) return failed(written.error());
  std::error_code ignored;
  fs::create_directory(account, ignored);
  Result<store::Ledger> ledger = store::Ledger::create({.budget = {}, .spill_folder = {}, .spill_limit = {}});
  if (!ledger) return failed(ledger.error());
  Result<OutputCopy> copy = OutputCopy::make();
  if (!copy) return failed(copy.error());

  program.roots = options.roots;
  program.preload = preload_of(err);
  program.environment = {{"ULLAGE_EXPLAIN", folder.string()},
                         {"ULLAGE_EXPLAIN_SCRIPT", script.string()},
                         {"ULLAGE_EXPLAIN_ACCOUNT", account.string()}};
  if (options.events) program.environment.emplace_back("ULLAGE_EXPLAIN_ENTRIES", std::to_string(*options.events));
  program.out = copy->program_stdout(), program.err = copy->program_stderr();
  program.has_ledger = false;
  program.on_start = [&] { copy->start(); };
  Watched watched;
  watched.machine = read_machine_memory(options.roots);
  err.flush();
  auto ended = launch(program, *ledger, signals);
  std::signal(SIGPIPE, SIG_IGN);  // a reader of stderr that has gone must not change the exit code
  if (const auto* failure = std::get_if<NotStarted>(&ended)) return not_started(program, failure->reason);
  watched.output = copy->finish();
  watched.run = report::summarize(ledger->page(), std::get<report::ProcessEnd>(ended));
  watched.refusals = read_refusals(account);
  return watched;
}

// ---- the answer

struct Answer {
  trace::Input input;  // the file of the first diagnoses: the snapshot if there is one, else the log
  Diagnoses snapshot;
  Diagnoses messages;
};

// Returns the messages' diagnoses whose most likely cause reaches kLikely and is not among the snapshot's causes. A
// snapshot sees one process and its pool. It never sees a limit of the process, other processes or the machine's
// memory. The messages' advice to record a snapshot is left out, because there is one already.
Diagnoses not_in_snapshot(const Answer& answer) {
  Diagnoses others;
  for (const diagnose::Diagnosis& message : answer.messages) {
    if (message.causes.empty() || message.causes.front().confidence < kLikely) continue;
    const std::string& id = message.causes.front().id;
    const bool known = std::any_of(answer.snapshot.begin(), answer.snapshot.end(), [&](const diagnose::Diagnosis& one) {
      return std::any_of(one.causes.begin(), one.causes.end(), [&](const auto& cause) { return cause.id == id; });
    });
    if (known) continue;
    others.push_back(message);
    others.back().to_know_more.clear();
    others.back().next.clear();
  }
  return others;
}

class Telling final {
 public:
  Telling(const ExplainOptions& options, const ExplainFiles& files, const fs::path& folder, const Watched& watched,
          std::ostream& err)
      : options_(options), files_(files), folder_(folder), watched_(watched), err_(err) {}

  int tell() {
    code_ = watched_.run.end.exit_code;
    const std::string command = report::quoted(fs::path(watched_.run.end.command.front()).filename().string());
    trace::Log log = log_of();
    const std::optional<Kill> kill = kill_of(watched_.run, watched_.machine, log);
    if (kill) add_kill(*kill, command, watched_.output, log);
    const bool died = code_ != 0 && !log.errors.empty();
    if (!died && watched_.refusals.empty()) return nothing_of_memory(command);
    say_what_happened(command, kill, log);
    if (died) keep_log(command, kill);
    Answer answer = answer_of(std::move(log), died);
    if (answer.snapshot.empty() && answer.messages.empty()) return code_;
    write(answer);
    return code_;
  }

 private:
  trace::Log log_of() const {
    Result<trace::Log> read = read::read_log(watched_.output, "the output");
    if (read) return std::move(read).value();
    trace::Log none;
    none.lines = static_cast<std::uint64_t>(std::count(watched_.output.begin(), watched_.output.end(), '\n'));
    return none;
  }

  // Nothing is said if the command succeeded, or if a person ended it.
  int nothing_of_memory(const std::string& command) {
    const int signal = code_ > 128 ? code_ - 128 : 0;
    if (code_ == 0 || signal == SIGINT || signal == SIGTERM || SignalForwarder::received() != 0) return code_;
    err_ << fmt::format("ullage: {} ended with exit code {}; nothing says that memory ran out\n", command, code_);
    if (code_ == kKilled) {
      err_ << fmt::format("ullage: signal 9 came from elsewhere: {} and the most it held was {}\n",
                          watched_.run.end.oom_kills == report::OomKills::Unchanged
                              ? "the kernel counted no kill for lack of memory,"
                              : "whether the kernel killed for lack of memory cannot be read here,",
                          to_string(watched_.run.process_peak));
    }
    return code_;
  }

  void say_what_happened(const std::string& command, const std::optional<Kill>& kill, const trace::Log& log) {
    const bool of_host = std::any_of(log.errors.begin(), log.errors.end(), [](const OutOfMemory& error) {
      return error.teller == trace::Teller::Cpu || error.teller == trace::Teller::KernelKill;
    });
    if (kill) {
      err_ << "ullage: " << kill->text(command) << '\n';
    } else if (of_host && code_ != 0) {
      err_ << fmt::format("ullage: {} ended with exit code {}; {}\n", command, code_,
                          host_use(watched_.run, watched_.machine).text());
    }
    std::uint64_t count = 0;
    for (const Refusals& one : watched_.refusals) count += one.count;
    if (count == 0) return;
    const Refusals& first = watched_.refusals.front();
    err_ << fmt::format("ullage: {} {} refused, {}{} on GPU {}; {} ended with exit code {}\n", count,
                        count == 1 ? "request was" : "requests were", count == 1 ? "" : "the last ",
                        to_string(first.requested), first.device, command, code_);
    for (const Refusals& one : watched_.refusals) {
      if (!one.snapshot.empty()) err_ << "ullage: wrote " << typed(one.snapshot) << '\n';
    }
  }

  void keep_log(const std::string& command, const std::optional<Kill>& kill) {
    std::error_code failed;
    fs::create_directories(folder_, failed);
    std::string text = watched_.output;
    // "exit code 137" is what a reader of the file recognises.
    if (kill) text += fmt::format("ullage: {} (exit code {})\n", kill->text(command), code_);
    log_ = log_file(folder_, watched_.refusals.empty() ? fs::path() : watched_.refusals.front().snapshot);
    if (const Status written = put(log_, text); !written) {
      err_ << "ullage: " << written.error().text() << '\n';
    } else {
      err_ << "ullage: wrote " << typed(log_) << '\n';
    }
  }

  Answer answer_of(trace::Log log, bool died) {
    Answer answer;
    if (died) {
      answer.messages = diagnose::diagnose(log, {typed(log_), options_.device, moment_of(options_)});
      answer.input = std::move(log);
    }
    for (const Refusals& one : watched_.refusals) {
      if (one.snapshot.empty()) continue;
      Result<trace::Input> snapshot = read::read_input_file(one.snapshot.string());
      if (!snapshot) {
        err_ << "ullage: " << snapshot.error().text() << '\n';
        continue;
      }
      answer.snapshot =
          diagnose::diagnose(*snapshot, {typed(one.snapshot), options_.device, moment_of(options_), true});
      answer.input = std::move(snapshot).value();
      break;
    }
    return answer;
  }

  void write(const Answer& answer) {
    const auto count = [&](int result) {
      if (result != to_int(ExitCode::Done) && code_ == 0) code_ = result;
    };
    Diagnoses first = answer.snapshot.empty() ? answer.messages : answer.snapshot;
    const Diagnoses others = answer.snapshot.empty() ? Diagnoses{} : not_in_snapshot(answer);
    if (options_.json) {
      first.insert(first.end(), others.begin(), others.end());
      count(write_answer(options_, files_, first, answer.input, err_, STDERR_FILENO, err_));
    } else {
      write_for_a_person(answer, first, others, count);
    }
    if (const std::string why = no_conversion(options_, answer.input); !why.empty()) {
      err_ << "ullage: --convert: " << why << '\n';
      return count(to_int(ExitCode::Failed));
    }
    const Diagnoses& of_page = answer.snapshot.empty() ? answer.messages : answer.snapshot;
    count(write_beside(
        options_, files_, of_page, answer.input, [](const std::string&) {}, err_));
  }

  template <class Count>
  void write_for_a_person(const Answer& answer, const Diagnoses& first, const Diagnoses& others, const Count& count) {
    if (!files_.answer) err_ << '\n';
    count(write_answer(options_, files_, first, answer.input, err_, STDERR_FILENO, err_));
    if (others.empty() || files_.answer) return;
    err_ << "\nullage: the error's words, which say what a snapshot cannot:\n\n";
    count(write_answer(options_, files_, others, answer.input, err_, STDERR_FILENO, err_));
  }

  const ExplainOptions& options_;
  const ExplainFiles& files_;
  const fs::path& folder_;
  const Watched& watched_;
  std::ostream& err_;
  fs::path log_;
  int code_ = 0;
};

// Adds how to explain a file, if the only word of the command names one: "explain -- FILE" once explained the file.
Refusal about_a_file(Refusal refusal, const std::vector<std::string>& command) {
  std::error_code failed;
  if (command.size() == 2 && fs::is_regular_file(command.back(), failed)) {
    refusal.message += "; to explain that file write: " + report::command_line("explain", {command.back()});
  }
  return refusal;
}

}  // namespace

int run_explained(const ExplainOptions& options, Streams streams) {
  const auto wrong_use = [&](const Error& error) {
    return refuse({to_int(ExitCode::WrongUse), error.text()}, "explain", streams.err);
  };
  const Result<ExplainFiles> files = prepare_explain_files(options, "");
  if (!files) return wrong_use(files.error());
  const Result<fs::path> folder = folder_of(options);
  if (!folder) return wrong_use(folder.error());
  std::variant<Launch, Refusal> target = find_target(options.command, "explain");
  if (const auto* refusal = std::get_if<Refusal>(&target)) {
    return refuse(about_a_file(*refusal, options.command), "explain", streams.err);
  }
  SignalForwarder signals;  // outlives the command, so that a late Ctrl-C does not lose the answer
  const auto watched = watch(std::get<Launch>(target), *folder, options, signals, streams.err);
  if (const auto* refusal = std::get_if<Refusal>(&watched)) return refuse(*refusal, "explain", streams.err);
  const int code = Telling(options, *files, *folder, std::get<Watched>(watched), streams.err).tell();
  streams.err.flush();
  return code;
}

}  // namespace ullage::cli
