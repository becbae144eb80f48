// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/take_runner.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/target.h"
#include "ullage/read/file/file_content.h"
#include "ullage/report/run_report.h"
#include "ullage/report/terminal/terminal_text.h"
#include "ullage/store/ledger.h"
#include "ullage/trace/file/trace_file.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLastLines = 8;
constexpr std::size_t kLongestLine = 400;  // characters; a longer line may be a whole dump

// Returns the arguments that are relative paths of files in the working folder. In the scratch folder these files do
// not exist, which may be why the program fails there. Skips the first word: the program itself was found.
std::string relative_names(const std::vector<std::string>& words) {
  std::string names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string value = word.substr(word.find('=') == std::string::npos ? 0 : word.find('=') + 1);
    std::error_code ignored;
    if (value.empty() || value.front() == '/' || !fs::exists(value, ignored)) continue;
    names += (names.empty() ? "" : ", ") + value;
  }
  return names;
}

// Returns "batch 2: step 2 of 3", from what the runtime has counted so far.
std::string stage_of(const TakeOrder& order, const store::LedgerPage& page) {
  std::uint64_t steps = 0;
  for (const store::LedgerSlot& slot : page.slots) {
    if (slot.pid.load() > 0) steps = std::max({steps, slot.steps.load(), slot.recorded_steps.load()});
  }
  if (order.stop_after == 0) return fmt::format("{}: step {}", order.name, steps + 1);
  return fmt::format("{}: step {} of {}", order.name, std::min(steps + 1, order.stop_after), order.stop_after);
}

Failure failed(const TakeOrder& order, const report::RunReport& report, const fs::path& outputs) {
  Failure failure;
  const int code = report.end.exit_code;
  std::string head;
  if (report.outcome == report::Outcome::KilledByKernel) {
    head = fmt::format("KILLED BY THE KERNEL for lack of memory, when the process held {}",
                       to_string(report.process_peak));
  } else if (code > 128) {  // as shells report a signal
    head = fmt::format("the program was killed by signal {}", code - 128);
  } else {
    head = fmt::format("the program failed with exit code {}", code);
  }
  std::vector<std::string> last = last_lines_of(outputs);
  failure.lines.push_back(fmt::format("{}: {}{}", order.name, head, last.empty() ? "" : "; its last lines:"));
  failure.lines.insert(failure.lines.end(), last.begin(), last.end());
  if (!report.message.empty()) failure.lines.push_back(report.message);
  failure.by_program = true;
  return failure;
}

Failure not_recorded(const TakeOrder& order, const report::RunReport& report) {
  if (!report.attached) {
    return {to_int(ExitCode::Failed),
            {fmt::format("{}: no process of the program loaded Ullage's runtime, so nothing was recorded; programs "
                         "that are linked to torch load it",
                         order.name)}};
  }
  const std::string why = report.message.empty() ? "no reason is known" : report.message;
  return {to_int(ExitCode::Failed), {fmt::format("{}: the trace was not written: {}", order.name, why)}};
}

Result<trace::TraceFile> read_trace(const fs::path& file) {
  ULLAGE_TRY_VALUE(const read::FileContent content, read::FileContent::open(file.string()));
  return trace::read_trace_file(content.bytes(), file.string());
}

fs::path trace_in(const fs::path& scratch) { return scratch / "take.ullage"; }

// Did the runtime end a process after TakeOrder::stop_after steps?
bool stopped_at_border(const store::LedgerPage& page) {
  return std::any_of(page.slots.begin(), page.slots.end(),
                     [](const store::LedgerSlot& slot) { return slot.stopped_at_border.load() != 0; });
}

int signal_of(const report::ProcessEnd& end) {
  if (SignalForwarder::received() != 0) return SignalForwarder::received();
  return end.exit_code == to_int(ExitCode::Interrupted) ? SIGINT : 0;
}

// Returns the failure if a signal or the deadline ended the program; nothing otherwise.
std::optional<Failure> cut_short(const TakeOrder& order, const report::ProcessEnd& end) {
  if (const int signal = signal_of(end); signal != 0) return Failure{128 + signal, {}};
  if (!end.out_of_time) return std::nullopt;
  Failure late{to_int(ExitCode::Failed), {order.name + ": the program was ended, because its time was over"}};
  late.out_of_time = true;
  return late;
}

bool is_interpreter(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const char* one : {"sh", "bash", "dash", "zsh", "perl", "ruby", "node"}) {
    if (name == one) return true;
  }
  return name.starts_with("python") || name.starts_with("pypy");
}

}  // namespace

std::vector<std::string> last_lines_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  // Reads only the last 64 KiB, because a program may print gigabytes.
  in.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(in.tellg());
  in.seekg(std::max<std::streamoff>(0, size - std::streamoff{1 << 16}));
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    last.push_back("  | " + report::clip(report::clean(line, false), kLongestLine));
    if (last.size() > kLastLines) last.pop_front();
  }
  return {last.begin(), last.end()};
}

Result<ScratchFolder> ScratchFolder::make() {
  std::error_code failed;
  const fs::path place = fs::temp_directory_path(failed);
  if (failed) return Error{Error::Kind::System, "no temporary folder: " + failed.message(), "TMPDIR"};
  std::string name = fs::absolute(place / "ullage-predict-XXXXXX", failed).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Error{Error::Kind::System, std::string("no folder can be made there: ") + std::strerror(errno),
                 place.string()};
  }
  return ScratchFolder(name);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Failure TakeRunner::advised(Failure failure, const std::vector<std::string>& words) const {
  const std::string names = here_ ? "" : relative_names(words);
  if (!names.empty()) {
    failure.lines.push_back("it ran in an empty folder, in which " + names +
                            " is not found: write whole paths, or give --here to run it where you are");
  }
  return failure;
}

TakeRunner::TakeRunner(Launch program, Bytes budget, store::SpillPlace spill, bool here, Progress& progress)
    : program_(std::move(program)), budget_(budget), spill_(std::move(spill)), here_(here), progress_(progress) {}

Launch TakeRunner::launch_of(const TakeOrder& order, const fs::path& scratch) const {
  Launch launch = program_;
  launch.words = order.words;
  launch.deadline = order.deadline;
  launch.outputs = scratch / "outputs";
  if (here_) return launch;
  launch.folder = scratch / "work";
  std::error_code ignored;
  fs::create_directory(launch.folder, ignored);  // if that fails, the chdir into it fails too and is reported
  launch.file = fs::absolute(launch.file);
  // The script of an interpreter is part of the command, so its path is made absolute. Any other file may be one that
  // the program writes.
  if (!is_interpreter(launch.file)) return launch;
  const auto script = std::find_if(launch.words.begin() + 1, launch.words.end(), [&](const std::string& word) {
    return !word.empty() && word.front() != '-' && fs::is_regular_file(word, ignored);
  });
  if (script != launch.words.end()) *script = fs::absolute(*script).string();
  return launch;
}

TakeRunner TakeRunner::without_spill() const {
  TakeRunner runner = *this;
  runner.spill_ = {};
  const Bytes machine = auto_budget(read_machine_memory(program_.roots));
  if (budget_ > Bytes{} && machine > budget_) runner.budget_ = std::min(machine, budget_ + budget_ / 4);
  return runner;
}

// A run that ended well. The folder must outlive the files that are read from it.
struct TakeRunner::Ended {
  ScratchFolder scratch;
  store::Ledger ledger;
  report::RunReport summary;
};

std::variant<TakeRunner::Ended, Failure> TakeRunner::launched(const TakeOrder& order, bool plainly,
                                                              SignalForwarder& signals) {
  Result<ScratchFolder> scratch = ScratchFolder::make();
  if (!scratch) return Failure{to_int(ExitCode::Failed), {scratch.error().text()}};
  Launch program = launch_of(order, scratch->path());
  program.has_ledger = !plainly;
  store::LedgerSettings settings;
  if (!plainly) {
    settings = {budget_, spill_.folder, spill_.most};
    settings.record_file = trace_in(scratch->path()).string();
    settings.stop_after = order.stop_after, settings.rehearsal = order.rehearsal;
    settings.no_plan = true;  // no plan is wanted: the program ends before it could follow one
  }
  Result<store::Ledger> ledger = store::Ledger::create(settings);
  if (!ledger) return Failure{to_int(ExitCode::Failed), {ledger.error().text()}};

  // The rest of the tree has no use without the process that was recorded. Ranks would wait for it, and then fail.
  if (settings.stop_after > 0)
    program.is_to_end = [&page = ledger->page()](std::int32_t) { return stopped_at_border(page); };

  progress_.stage([&] { return plainly ? order.name : stage_of(order, ledger->page()); });
  auto ended = launch(program, *ledger, signals);
  progress_.pause();
  if (const auto* failure = std::get_if<NotStarted>(&ended)) {
    const Refusal refusal = not_started(program, failure->reason);
    return Failure{refusal.exit_code, {refusal.message}};
  }
  auto& end = std::get<report::ProcessEnd>(ended);
  if (std::optional<Failure> cut = cut_short(order, end)) return *cut;
  end.record_file = settings.record_file;
  report::RunReport report = report::summarize(ledger->page(), end);
  if (end.exit_code != 0 && !stopped_at_border(ledger->page()))
    return advised(failed(order, report, program.outputs), program.words);
  return Ended{std::move(scratch).value(), std::move(ledger).value(), std::move(report)};
}

std::variant<TakeDone, Failure> TakeRunner::run(const TakeOrder& order) {
  // Made before the folder and so destroyed after it. Otherwise a Ctrl-C between the two would end us at once and leave
  // the folder behind.
  SignalForwarder signals;
  auto ended = launched(order, /*plainly=*/false, signals);
  if (auto* failure = std::get_if<Failure>(&ended)) return std::move(*failure);
  const auto& [scratch, ledger, summary] = std::get<Ended>(ended);
  if (!summary.recorded) return not_recorded(order, summary);
  Result<trace::TraceFile> read = read_trace(trace_in(scratch.path()));
  if (!read) return Failure{to_int(ExitCode::Failed), {order.name + ": " + read.error().text()}};
  const Bytes others = saturating_sub(summary.tree_peak.value_or(Bytes{}), summary.process_peak);
  return TakeDone{std::move(read).value(), summary.recorded_steps, stopped_at_border(ledger.page()), others};
}

std::variant<Bytes, Failure> TakeRunner::run_plainly(const TakeOrder& order) {
  SignalForwarder signals;
  auto ended = launched(order, /*plainly=*/true, signals);
  if (auto* failure = std::get_if<Failure>(&ended)) return std::move(*failure);
  return std::get<Ended>(ended).summary.tree_peak.value_or(Bytes{});
}

}  // namespace ullage::cli
