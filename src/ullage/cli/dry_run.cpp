// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/dry_run.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/optimizer_steps.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/programs.h"
#include "ullage/cli/words.h"
#include "ullage/drycard/in_python.h"
#include "ullage/drycard/ledger.h"
#include "ullage/report/run_report.h"
#include "ullage/store/ledger.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using report::DryReport;

constexpr const char* kSeed = "1";  // any number; always the same one, so that a repeated run finds the same
// The newest version that cuDNN 8 can have. A torch that is linked to cuDNN 8 takes no other major version.
constexpr const char* kNewestOld = "8999";
constexpr const char* kCardLibrary = "libullage_drycard.so";

Result<fs::path> card_library() {
  for (const fs::path& folder : {own_folder(), own_folder().parent_path() / "lib"}) {
    std::error_code ignored;
    if (fs::exists(folder / kCardLibrary, ignored)) return folder / kCardLibrary;
  }
  return Error{
      Error::Kind::NotFound,
      std::string(kCardLibrary) + " is missing: it must be in the folder of ullage, or in lib beside that folder",
      own_folder().string()};
}

Status write_file(const fs::path& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (out) return success();
  return Error{Error::Kind::System, "cannot be written", file.string()};
}

// Makes the file that the program's processes write their account into. A fresh account is all zeros.
Status make_account(const fs::path& file) { return write_file(file, std::string(sizeof(drycard::CardLedger), '\0')); }

std::unique_ptr<drycard::CardLedger> read_account(const fs::path& file) {
  auto account = std::make_unique<drycard::CardLedger>();
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(account.get()), sizeof *account);
  return account;
}

Bytes bytes_of(const drycard::LedgerWord& word) { return Bytes{word.load()}; }

DryReport::Place place_of(const Json& json) {
  return {json.value("file", std::string()), json.value("line", 0), json.value("function", std::string())};
}

// Adds to `report` what one Python process of the program wrote (drycard/in_python.py). Several processes may report.
// Then the largest count of steps and the largest peaks are kept, and the first error that is read.
void add_python(const Json& json, DryReport& report) {
  report.torch = json.value("torch", std::string());
  DryReport its;
  for (const Json& one : json.value("steps", Json::array())) {
    its.steps_of.push_back({one.value("steps", std::uint64_t{0}), one.value("optimizers", std::uint64_t{0})});
  }
  if (its.steps() >= report.steps()) report.steps_of = its.steps_of;
  const std::string ended = json.value("ended_by", std::string());
  if (ended == "steps") report.ended_by = DryReport::EndedBy::Steps;
  if (ended == "seconds") report.ended_by = DryReport::EndedBy::Seconds;
  std::size_t at = 0;
  for (const Json& card : json.value("cards", Json::array())) {
    if (at == report.cards.size()) break;
    DryReport::Card& of = report.cards[at++];
    of.allocated = std::max(of.allocated, Bytes{card.value("allocated_peak", std::uint64_t{0})});
    of.requested = std::max(of.requested, Bytes{card.value("requested_peak", std::uint64_t{0})});
    of.reserved = std::max(of.reserved, Bytes{card.value("reserved_peak", std::uint64_t{0})});
  }
  for (const Json& one : json.value("out_of_memory", Json::array())) {
    report.refused.push_back({one.value("device", 0), Bytes{one.value("request", std::uint64_t{0})}, place_of(one)});
  }
  for (const Json& one : json.value("bounds", Json::array())) {
    report.bounds.push_back({one.value("op", std::string()), one.value("how", std::string()), place_of(one),
                             one.value("count", std::uint64_t{0})});
  }
  if (const auto error = json.find("error"); error != json.end() && error->is_object() && !report.error) {
    report.error = {error->value("type", std::string()), error->value("text", std::string()), place_of(*error)};
  }
}

// If a request was refused in the backward pass, its place is unknown: that pass runs on a thread without a line of the
// program. It gets the place of the error that ended the program.
void add_places(DryReport& report) {
  if (!report.error) return;
  for (DryReport::Refused& one : report.refused) {
    if (one.place.file.empty()) one.place = report.error->place;
  }
}

// Notes the libraries for another CUDA than torch's that a process of the program had loaded. Packages bring one for
// each CUDA, and most are never loaded.
void add_other_majors(const Json& json, const std::vector<drycard::OtherMajor>& others, int torchs, DryReport& report) {
  const std::vector<std::string> loaded = json.value("libraries", std::vector<std::string>());
  for (const drycard::OtherMajor& one : others) {
    std::error_code ignored;
    const std::string path = fs::canonical(one.path, ignored).string();
    if (std::ranges::find(loaded, path) == loaded.end()) continue;
    const std::string note = fmt::format(
        "what {} takes: it is built for CUDA {}, torch for CUDA {}, and some structs differ; install its package for "
        "CUDA {}, or torch for CUDA {}",
        one.path, one.cuda_major, torchs, torchs, one.cuda_major);
    if (std::ranges::find(report.notes, note) == report.notes.end()) report.notes.push_back(note);
  }
}

// Adds what all Python processes of the program wrote. Returns the memory history of the one that reserved most; empty
// if none was written.
fs::path add_pythons(const fs::path& folder, const std::vector<drycard::OtherMajor>& others, int cuda_major,
                     DryReport& report) {
  fs::path history;
  std::uint64_t most = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    add_python(json, report);
    add_other_majors(json, others, cuda_major, report);
    std::uint64_t reserved = 0;
    for (const Json& card : json.value("cards", Json::array()))
      reserved += card.value("reserved_peak", std::uint64_t{0});
    const fs::path its = fs::path(entry.path()).replace_extension(".pickle");
    if (fs::exists(its) && (history.empty() || reserved > most)) history = its, most = reserved;
  }
  return history;
}

void add_account(const drycard::CardLedger& account, DryReport& report) {
  for (std::size_t i = 0; i < report.cards.size(); ++i) {
    const drycard::LedgerCard& card = account.card[i];
    if (card.processes.load() == 0) continue;
    DryReport::Card& of = report.cards[i];
    of.taken = bytes_of(card.taken_peak), of.used = bytes_of(card.peak);
    of.context = saturating_sub(of.taken, of.used);
  }
  report.pinned_peak = bytes_of(account.pinned_peak);
  report.reads = account.reads.load(), report.read_bytes = bytes_of(account.read_bytes);
  for (const drycard::LedgerName& name : account.unknown) {
    if (name.set.load() == 2) report.unknown_functions.emplace_back(name.text.data());
  }
}

// Returns the library `name` beside torch or in one of NVIDIA's packages of the same environment; empty if it is in
// neither.
fs::path nvidia_library(const fs::path& torch_lib, const std::string& name) {
  std::error_code ignored;
  if (fs::exists(torch_lib / name, ignored)) return torch_lib / name;
  for (const fs::directory_entry& package : fs::directory_iterator(torch_lib / "../../nvidia", ignored)) {
    const fs::path path = package.path() / "lib" / name;
    if (fs::exists(path, ignored)) return fs::canonical(path, ignored);
  }
  return {};
}

// Returns the version of CUDA that torch was built with ("12.1"), which its version.py states. If that is another
// version than that of its libraries, or none, returns the libraries' `major`.
std::string cuda_version(const fs::path& torch_lib, int major) {
  std::ifstream in(torch_lib / "../version.py");
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find('\'');
    if (!line.starts_with("cuda") || begin == line.npos) continue;
    const std::string version = line.substr(begin + 1, line.find('\'', begin + 1) - begin - 1);
    if (version.starts_with(fmt::format("{}.", major))) return version;
  }
  return std::to_string(major);
}

// Returns whether torch is linked to a cuDNN that has no version which plans without a card. 0: it is linked to none.
bool is_old(int cudnn_major) { return cudnn_major > 0 && cudnn_major < 9; }

void add_unanswered(const drycard::CardLedger& account, DryReport& report) {
  if (const auto rnns = account.unanswered_rnns.load(); rnns > 0) {
    report.notes.push_back(
        fmt::format("reserve spaces and workspaces of cuDNN's recurrent networks, counted as 0 bytes in {} call{}",
                    rnns, rnns == 1 ? "" : "s"));
  }
}

}  // namespace

std::string cudnn_note(std::uint64_t plans, int cuda_major, int cudnn_major, bool is_installed) {
  const std::string package = fmt::format("pip install 'nvidia-cudnn-cu{}>=9.8'", cuda_major);
  std::string why;
  if (is_old(cudnn_major)) {
    why = fmt::format(
        "cuDNN {}, which this torch needs, cannot plan without a card, 9.8 and later can: use torch 2.8 or later, or "
        "2.4 to 2.7 with {}",
        cudnn_major, package);
  } else if (is_installed) {
    why = "this cuDNN cannot plan without a card, 9.8 and later can: " + package;
  } else {
    why = "for cuDNN's own figures install it beside torch, in version 9.8 or later: " + package;
  }
  return fmt::format("workspaces of cuDNN, counted as 0 bytes for its {} plan{}: {}", plans, plans == 1 ? "" : "s",
                     why);
}

Error no_cuda_build(const TorchFound& torch) {
  return wrong(fmt::format("the torch of {} is a CPU build; a dry run needs the CUDA build of the same version in an "
                           "environment of its own: python3 -m venv DIR && DIR/bin/pip install torch (no card is "
                           "needed). For an estimate from the CPU build: ullage predict --device cuda --vary ...",
                           torch.python.string()),
               "--device");
}

Result<DryRunner> DryRunner::make(const TorchFound& torch) {
  if (!torch.has_cuda) return no_cuda_build(torch);
  ULLAGE_TRY_VALUE(const fs::path library, card_library());
  ULLAGE_TRY_VALUE(const fs::path before, find_preload(own_folder()));
  ULLAGE_TRY_VALUE(ScratchFolder folder, ScratchFolder::make());
  DryRunner runner(std::move(folder));
  const fs::path root = runner.folder_.path();
  drycard::StandInRequest request;
  request.torch_lib_folder = torch.lib.string();
  request.out_folder = (root / "lib").string();
  request.drycard_library = library.string();
  for (const fs::path& one : torch.packages) request.others.push_back(one.string());
  for (const char* nvrtc : {"libnvrtc.so.12", "libnvrtc.so.13"}) {  // cuDNN compiles engines with it and needs no card
    if (!nvidia_library(torch.lib, nvrtc).empty()) request.real.emplace_back(nvrtc);
  }
  ULLAGE_TRY_VALUE(const drycard::StandIns made, drycard::make_stand_ins(request));
  runner.preload_ = before.string();
  for (const std::string& one : made.preload) runner.preload_ += ":" + one;
  runner.cuda_major_ = made.cuda_major, runner.cudnn_major_ = made.cudnn_major;
  runner.cuda_ = cuda_version(torch.lib, made.cuda_major);
  if (!is_old(made.cudnn_major)) runner.cudnn_ = nvidia_library(torch.lib, "libcudnn_graph.so.9").string();
  runner.notes_ = made.notes;
  runner.other_majors_ = made.other_majors;
  ULLAGE_TRY(write_file(root / "in_python.py", kOptimizerSteps + std::string(drycard::kInPython)));
  ULLAGE_TRY(write_file(root / "values.py", drycard::kValues));
  return runner;
}

Result<DryRunner> DryRunner::make(const Launch& program) {
  ULLAGE_TRY_VALUE(const TorchFound torch, find_torch(program));
  return make(torch);
}

int refuse_dry(const Error& error, const std::string& verb, std::ostream& err) {
  const bool wrong_use = error.kind == Error::Kind::BadArgument;
  return refuse({to_int(wrong_use ? ExitCode::WrongUse : ExitCode::Failed), error.text()}, verb, err);
}

void say_host_filled(const std::optional<DryReport::HostFilled>& filled, std::ostream& err) {
  if (!filled) return;
  for (const std::string& line : report::host_filled_lines(*filled)) err << "ullage: " << line << '\n';
}

std::optional<DryReport::HostFilled> DryAccount::host_filled() const {
  std::optional<DryReport::HostFilled> filled = guard->filled();
  if (filled) filled->pinned = bytes_of(read_account(folder / "card")->pinned);
  return filled;
}

Result<DryAccount> DryRunner::put_under(Launch& program, const DryOrder& order) {
  const fs::path root = folder_.path(), at = root / fmt::format("run-{}", ++*runs_);
  std::error_code ignored;
  fs::create_directory(at, ignored);
  ULLAGE_TRY(make_account(at / "card"));
  program.preload = preload_;
  program.deadline = order.deadline;
  const auto guard = std::make_shared<HostGuard>(program.roots, at);
  program.is_to_end = [guard](std::int32_t child) { return guard->look(child); };
  const DryAccount account{at, guard};
  if (order.quiet_program) program.outputs = at / "outputs";
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"ULLAGE_DRYCARD_CARD", std::string(order.card.model.name)},
      {"ULLAGE_DRYCARD_MEMORY", std::to_string(order.card.model.total)},
      {"ULLAGE_DRYCARD_REFUSES", order.refuses ? "1" : "0"},
      {"ULLAGE_DRYCARD_COUNT", std::to_string(order.card.count)},
      {"ULLAGE_DRYCARD_CUDA", cuda_},
      {"ULLAGE_DRYCARD_LEDGER", (at / "card").string()},
      {"ULLAGE_DRYCARD_CUDNN_LIBRARY", cudnn_},
      {"ULLAGE_DRYCARD_SCRIPT", (root / "in_python.py").string()},
      {"ULLAGE_DRYCARD_VALUES", (root / "values.py").string()},
      {"ULLAGE_DRYCARD_ACCOUNT", at.string()},
      {"ULLAGE_DRYCARD_LINE_SIGNAL", std::to_string(line_signal())},
      {"ULLAGE_DRYCARD_HISTORY", order.history ? "1" : "0"},
      {"ULLAGE_DRYCARD_STEPS", std::to_string(order.steps)},
      {"ULLAGE_DRYCARD_SECONDS", fmt::format("{}", order.limit.count)},
      {"TRITON_LIBCUDA_PATH", (root / "lib").string()},
      kDeferCompiler,  // the machine's own memory is not in question
  };
  program.environment.insert(program.environment.end(), environment.begin(), environment.end());
  if (is_old(cudnn_major_)) program.environment.emplace_back("ULLAGE_DRYCARD_CUDNN", kNewestOld);
  program.environment.emplace_back("ULLAGE_DRYCARD_PORTS", order.own_ports ? (at / "ports").string() : "");
  if (!order.has_budget) return account;
  program.environment.emplace_back("ULLAGE_DRYCARD_CHECKS", kSeed);
  program.environment.emplace_back("ULLAGE_PLANNING", "wait");
  return account;
}

report::DryCardCount DryRunner::count(const DryOrder& order, const DryAccount& of) {
  const std::unique_ptr<drycard::CardLedger> account = read_account(of.folder / "card");
  report::DryCardCount count;
  count.word = order.device, count.memory = Bytes{order.card.model.total};
  count.pinned_peak = bytes_of(account->pinned_peak);
  for (int i = 0; i < order.card.count; ++i) {
    count.peak = std::max(count.peak, bytes_of(account->card[static_cast<std::size_t>(i)].taken_peak));
  }
  count.launches = account->launches.load(), count.unread_launches = account->unread_launches.load();
  count.kernels = account->kernels.load(), count.kernel_code = bytes_of(account->kernel_code);
  count.findings = account->findings.load();
  for (const drycard::LedgerFinding& one : account->finding) {
    if (one.set.load() != 0) count.finding_texts.emplace_back(one.text.data());
  }
  return count;
}

std::variant<DryDone, Refusal> DryRunner::run(const Launch& program, const DryOrder& order) {
  const auto failed = [](const Error& error) { return Refusal{to_int(ExitCode::Failed), error.text()}; };
  Launch launch_it = program;
  const Result<DryAccount> put = put_under(launch_it, order);
  if (!put) return failed(put.error());
  launch_it.has_ledger = false;  // nothing is budgeted, not by a run around this one either
  launch_it.environment.emplace_back(store::Ledger::kVariable, "");
  const fs::path& folder = put->folder;
  Result<store::Ledger> ledger = store::Ledger::create({.budget = {}, .spill_folder = {}, .spill_limit = {}});
  if (!ledger) return failed(ledger.error());
  SignalForwarder signals;
  auto ended = launch(launch_it, *ledger, signals);
  std::signal(SIGPIPE, SIG_IGN);
  if (const auto* failure = std::get_if<NotStarted>(&ended)) return not_started(launch_it, failure->reason);
  auto& end = std::get<report::ProcessEnd>(ended);
  const report::RunReport host = report::summarize(ledger->page(), end);

  DryDone done;
  DryReport& report = done.report;
  report.command = program.words;
  report.card_word = order.device, report.card_name = std::string(order.card.model.product);
  report.card_memory = Bytes{order.card.model.total};
  report.only_size_known = !names_a_card(order.device);
  report.cards.resize(static_cast<std::size_t>(order.card.count));
  report.exit_code = end.exit_code, report.wall = end.wall;
  report.host_peak = host.tree_peak.value_or(host.process_peak);
  report.host_total = most_there_is(read_machine_memory(program.roots)).value_or(Bytes{});
  report.host_filled = put->host_filled();
  // The control groups may not say why a program was killed. Then a SIGKILL counts as lack of memory if the program
  // held three quarters of the machine's memory or more.
  report.host_ran_out =
      report.host_filled || host.outcome == report::Outcome::KilledByKernel ||
      (end.signal == SIGKILL && report.host_total > Bytes{} && report.host_peak >= report.host_total / 4 * 3);
  report.notes = notes_;
  done.history = add_pythons(folder, other_majors_, cuda_major_, report);
  if (end.out_of_time) report.ended_by = DryReport::EndedBy::Seconds;
  add_places(report);
  const std::unique_ptr<drycard::CardLedger> account = read_account(folder / "card");
  add_account(*account, report);
  if (const auto plans = account->unanswered_plans.load(); plans > 0) {
    report.notes.push_back(cudnn_note(plans, cuda_major_, cudnn_major_, !cudnn_.empty()));
  }
  add_unanswered(*account, report);
  if (order.quiet_program) done.last_lines = last_lines_of(folder / "outputs");
  return done;
}

}  // namespace ullage::cli
