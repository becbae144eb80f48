// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/advise_command.h"

#include "ullage/advise/advice.h"
#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cli/advise_runs.h"
#include "ullage/cli/knobs.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/planned_fit.h"
#include "ullage/cli/progress.h"
#include "ullage/cli/size_search.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/read/input.h"
#include "ullage/report/advice_report.h"
#include "ullage/report/command_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
using advise::Advice;
using advise::Row;
using advise::Trial;
using Clock = std::chrono::steady_clock;

constexpr const char* kSmallerBatch = "smaller_batch";  // explain's word for it

int refused_as(const Error& error, std::ostream& err) {
  const bool wrong_use = error.kind == Error::Kind::BadArgument;
  return refuse({to_int(wrong_use ? ExitCode::WrongUse : ExitCode::Failed), error.text()}, "advise", err);
}

// What was asked, checked before any work starts.
struct Question {
  std::optional<Knob> knob;
  std::optional<DryCard> card;  // none: on this machine's CPU
  std::string device;           // as written
  Bytes memory;                 // of the card, or stated
};

Result<Question> read_question(const AdviseOptions& options, bool has_cuda) {
  Question question;
  if (options.device && options.memory)
    return wrong("does not go with --device: --device cuda:SIZE states the card's memory", "--memory");
  question.device = options.device.value_or(has_cuda && !options.memory ? "cuda" : "cpu");
  if (question.device != "cpu") {
    ULLAGE_TRY_VALUE(question.card, read_dry_card(question.device));
    question.memory = Bytes{question.card->model.total};
  } else if (options.memory && *options.memory != "auto") {
    Result<Bytes> size = parse_bytes(*options.memory);
    if (!size) return wrong(size.error().message, "--memory");
    if (*size == Bytes{}) return wrong("0 bytes are no memory", "--memory");
    question.memory = *size;
  } else {
    question.memory = auto_budget(read_machine_memory(options.roots));
    if (question.memory == Bytes{}) return wrong("this machine does not say how much it has: state a size", "--memory");
  }
  if (options.seconds <= 0) return wrong(fmt::format("{} is no time: at least 1", options.seconds), "--seconds");
  if (options.vary.empty() && options.at.empty()) return question;
  ULLAGE_TRY_VALUE(const Knobs knobs, read_knobs(options.vary, options.at));
  ULLAGE_TRY(check_placeholders(options.target, knobs.at));
  if (knobs.at.size() > 1) return wrong("one size can be searched, there are 2", "--vary");
  question.knob = knobs.at.front();
  return question;
}

Row row_of(const Trial& trial) {
  Row row;
  row.id = trial.id, row.name = trial.name, row.effect = trial.effect;
  row.action = trial.action, row.place = trial.place;
  return row;
}

// A remedy that explain worked out. `peak` is the plain program's, if it is known. Leaves `fits` open.
Row row_of(const diagnose::Remedy& remedy, std::optional<Bytes> peak) {
  Row row;
  row.id = remedy.id, row.name = remedy.id, row.action = remedy.action, row.note = remedy.why;
  std::ranges::replace(row.name, '_', ' ');
  row.effect_known = false;
  row.basis = remedy.saves ? advise::Basis::Computed : advise::Basis::NotTried;
  if (remedy.saves && peak) row.peak = saturating_sub(*peak, *remedy.saves);
  return row;
}

// Works the answer out. Every method may run the program several times; none begins a run after the time is over.
class Adviser final {
 public:
  Adviser(AdviseRuns& runs, const Question& question, const AdviseOptions& options, Progress& progress,
          std::ostream& err)
      : runs_(runs), question_(question), options_(options), progress_(progress), err_(err) {}

  // Returns what stopped it, if there is no answer.
  std::optional<Tried> work() {
    if (auto stopped = run_plain()) return stopped;
    add_plan();
    try_each();
    search_knob();
    try_together();
    add_times();
    add_computed();
    if (interrupted_) return stopped_;
    if (!on_card()) {
      advice_.notes.emplace_back(
          "peaks are those under `ullage run --memory`; a plain process holds more, because malloc keeps what is "
          "freed");
    }
    advise::sort_rows(advice_);
    advice_.wall = elapsed();
    return std::nullopt;
  }

  const Advice& advice() const { return advice_; }

 private:
  bool on_card() const { return question_.card.has_value(); }

  Seconds elapsed() const { return Seconds{std::chrono::duration<double>(Clock::now() - began_).count()}; }
  bool time_is_over() const { return elapsed().count >= options_.seconds; }

  TryOrder order(const Trial* trial) const {
    TryOrder order;
    order.trial = trial;
    if (question_.knob) order.knobs = {*question_.knob};
    return order;
  }

  Tried run(const TryOrder& order, const std::string& what) {
    progress_.stage(what);
    ++advice_.runs;
    Tried tried = runs_.run(order);
    progress_.pause();
    if (tried.interrupted) interrupted_ = true, stopped_ = tried;
    return tried;
  }

  // A card's program that ran out is run again on an endless card, because what it needs is not known otherwise.
  Bytes need_of(TryOrder order, const Tried& tried, const std::string& what) {
    if (!on_card() || tried.end != Tried::End::RanOut) return tried.peak;
    order.endless = true, order.history = false;
    const Tried whole = run(order, what + ", on a card without an end");
    if (whole.end != Tried::End::Fits) return Bytes{};
    merge(whole.facts);
    return whole.peak;
  }

  // A run that ended early saw less of the program than a whole one.
  void merge(const advise::Facts& more) {
    if (more.network || more.optimizer) facts_ = more;
  }

  std::optional<Tried> run_plain() {
    TryOrder as_it_is = order(nullptr);
    as_it_is.history = true;
    Tried tried = run(as_it_is, "the program as it is");
    if (tried.end == Tried::End::Failed || interrupted_) return tried;
    facts_ = tried.facts;
    Row& plain = advice_.plain;
    plain.name = "as it is";
    plain.fits = tried.end == Tried::End::Fits;
    if (!*plain.fits) advice_.refused = tried.error;
    if (const Bytes need = need_of(as_it_is, tried, "the program as it is"); need > Bytes{}) plain.peak = need;
    if (!plain.peak) {
      advice_.notes.emplace_back(
          "what it needs is not known: it fails on a card without an end too, for another reason");
    }
    plain_ = std::move(tried);
    return std::nullopt;
  }

  // On the CPU the plan of `ullage run` is one of the remedies, and it is exact.
  void add_plan() {
    if (!plain_.prediction || plain_.end != Tried::End::RanOut) return;
    predict::Prediction& prediction = *plain_.prediction;
    progress_.stage("planning");
    add_planned_fit(prediction, progress_, err_);
    progress_.pause();
    if (!prediction.planned) return;
    const predict::PlannedFit& plan = *prediction.planned;
    Row row;
    row.id = "ullage_run";
    row.basis = advise::Basis::Planned;
    row.name = fmt::format("plan: {} values recomputed, {} moved", plan.recomputed, plan.spilled);
    row.fits = plan.fits;
    row.peak = plan.fits ? question_.memory : plan.least;
    if (plan.fits) row.more_time = plan.more_time;
    if (!plan.fits) row.name = "plan: the least that one was found for";
    std::vector<std::string> target = options_.target;
    if (question_.knob) target = fill(target, {*question_.knob});
    row.action = report::command_line("run --memory " + report::as_option(*row.peak), target);
    advice_.rows.push_back(std::move(row));
  }

  void try_each() {
    advise::Setting setting;
    setting.on_card = on_card();
    setting.has_bfloat16 = !on_card() || question_.card->model.major >= 8;
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      if (const char* set = std::getenv(name)) setting.allocator = set;
    }
    for (const Trial& trial : advise::trials_for(facts_, setting)) {
      if (interrupted_) return;
      advice_.rows.push_back(row_tried(trial));
      if (advice_.rows.back().basis == advise::Basis::Tried && advice_.rows.back().peak) tried_.push_back(trial);
    }
  }

  Row row_tried(const Trial& trial) {
    Row row = row_of(trial);
    if (time_is_over()) {
      row.basis = advise::Basis::NotTried;
      row.note =
          fmt::format("not tried: the time of {} was over; --seconds gives more", to_string(Seconds{options_.seconds}));
      return row;
    }
    TryOrder with = order(&trial);
    Tried tried = run(with, trial.name);
    if (tried.end == Tried::End::Failed && !trial.if_refused.empty() && !interrupted_) {
      with.second_try = true;
      tried = run(with, trial.name);
      row.action += trial.more_action;
    }
    if (tried.end == Tried::End::Failed) {
      row.note = "tried, and the program failed: " + tried.error;
      return row;
    }
    row.fits = tried.end == Tried::End::Fits;
    if (const Bytes need = need_of(with, tried, trial.name); need > Bytes{}) row.peak = need;
    if (tried.step) steps_.push_back({row.id, *tried.step});
    if (*row.fits) to_time_.push_back({trial, with.second_try});
    return row;
  }

  // On the CPU the runs have measured their steps; the plain program runs once more, so that a slow moment counts less.
  // On a card each program that fits runs once more, and its ops are timed by the card's rates.
  void add_times() {
    if (interrupted_ || advice_.rows.empty() || time_is_over()) return;
    if (on_card() && !names_a_card(question_.device)) {
      advice_.notes.emplace_back("name a card (rtx3060, a100-40gb) to see times: of cuda:SIZE only the size is known");
      return;
    }
    TryOrder as_it_is = order(nullptr);
    as_it_is.endless = as_it_is.timed = on_card();
    std::optional<Seconds> plain = run(as_it_is, "the program as it is, for its time").step;
    if (plain_.step && (!plain || plain_.step->count < plain->count)) plain = plain_.step;
    if (!plain || plain->count <= 0) return;
    for (const auto& [trial, second_try] : to_time_) {
      if (!on_card() || time_is_over() || interrupted_) break;
      TryOrder with = order(&trial);
      with.endless = with.timed = true, with.second_try = second_try;
      if (const Tried tried = run(with, trial.name + ", for its time"); tried.step)
        steps_.push_back({trial.id, *tried.step});
    }
    for (Row& row : advice_.rows) {
      const auto found = std::ranges::find(steps_, row.id, &Timed::id);
      if (found != steps_.end()) row.more_time = found->step.count / plain->count - 1;
    }
    advice_.time_basis =
        on_card() ? "of a step, estimated: each op takes the longer of its operations and its bytes at the card's "
                    "published rates, and 5 us"
                  : "of a step, measured here under the recorder in one run each, so noise of some 10 %";
  }

  // What explain computes from the recording of the plain program.
  void add_computed() {
    if (interrupted_ || !plain_.history || !advice_.plain.peak) return;
    const auto diagnoses = diagnose::diagnose(*plain_.history, {"", std::nullopt, std::nullopt});
    if (diagnoses.empty()) return;
    for (const diagnose::Remedy& remedy : diagnoses.front().remedies) {
      const bool known = std::ranges::any_of(advice_.rows, [&](const Row& row) { return row.id == remedy.id; });
      if (known || !remedy.saves || is_of_ullage(remedy.id)) continue;
      Row row = row_of(remedy, advice_.plain.peak);
      row.fits = *row.peak <= question_.memory;
      advice_.rows.push_back(std::move(row));
    }
  }

  void search_knob() {
    if (!question_.knob || interrupted_) return;
    const Knob& knob = *question_.knob;
    Bytes at_found;
    const SizeTried at_first{plain_.end == Tried::End::Fits, plain_.peak};
    const SizesFound found = search_sizes(knob.value, at_first, question_.memory, [&](std::int64_t size) {
      if (time_is_over() || interrupted_) return std::optional<SizeTried>();
      TryOrder one;
      one.knobs = {Knob{knob.name, size}};
      const Tried tried = run(one, fmt::format("{} {}", knob.name, size));
      if (tried.end == Tried::End::Failed) return std::optional<SizeTried>();
      if (tried.end == Tried::End::Fits) at_found = tried.peak;
      return std::optional(SizeTried{tried.end == Tried::End::Fits, tried.peak});
    });
    if (!found.fits || *found.fits == knob.value) return;
    Row row;
    row.id = kSmallerBatch;
    const bool sure = found.too_large && *found.too_large - *found.fits == 1;
    row.name = fmt::format("{} {}: {}", knob.name, *found.fits,
                           sure ? "the largest that fits" : "fits; larger ones were not tried");
    row.effect = advise::Effect::Different;
    row.fits = true;
    row.peak = at_found;
    if (*found.fits < knob.value) row.action = accumulation(knob, *found.fits);
    advice_.rows.push_back(std::move(row));
  }

  // The largest part of the size that fits and divides it: several of them make the same step.
  static std::string accumulation(const Knob& knob, std::int64_t fits) {
    std::int64_t part = fits;
    while (part > 1 && knob.value % part != 0) --part;
    if (part <= 1) return fmt::format("{}={} in place of {}", knob.name, fits, knob.value);
    return fmt::format(
        "{0}={1}, and for a step of {2} as before: add up the gradients of {3}, each loss divided by {3}", knob.name,
        part, knob.value, knob.value / part);
  }

  // Where no single remedy fits at the wanted size, looks for several that do: first all that keep the bits, then all.
  // From a set that fits each is left out again that is not needed, the one with the strongest effect on results first.
  void try_together() {
    const auto fits = [](const Row& row) {
      return row.basis == advise::Basis::Tried && row.fits.value_or(false) && row.id != kSmallerBatch;
    };
    if (advice_.plain.fits.value_or(false) || std::ranges::any_of(advice_.rows, fits) || interrupted_) return;
    std::vector<Trial> all = compatible(tried_);
    std::ranges::stable_sort(all, [](const Trial& a, const Trial& b) { return a.effect < b.effect; });
    for (const advise::Effect most : {advise::Effect::SameBits, advise::Effect::Rounding, advise::Effect::Different}) {
      std::vector<Trial> set;
      std::ranges::copy_if(all, std::back_inserter(set), [&](const Trial& one) { return one.effect <= most; });
      if (set.size() < 2 || (!all.empty() && most != advise::Effect::SameBits && !has(set, most))) continue;
      if (time_is_over() || interrupted_) break;
      std::optional<Row> row = row_of_set(set);
      if (!row || !row->fits.value_or(false)) continue;
      for (std::size_t at = set.size(); at-- > 0 && set.size() > 2 && !time_is_over();) {
        std::vector<Trial> fewer = set;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
        std::optional<Row> its = row_of_set(fewer);
        if (its && its->fits.value_or(false)) set = std::move(fewer), row = std::move(its);
      }
      advice_.rows.push_back(std::move(*row));
      return;
    }
  }

  static bool has(const std::vector<Trial>& set, advise::Effect effect) {
    return std::ranges::any_of(set, [&](const Trial& one) { return one.effect == effect; });
  }

  // Of two settings of the allocator, or two kinds of optimizer's step, the one that took less stays.
  std::vector<Trial> compatible(const std::vector<Trial>& trials) const {
    std::vector<Trial> kept;
    for (const Trial& one : trials) {
      const auto clashes = [&](const Trial& other) {
        return (!one.allocator.empty() && !other.allocator.empty()) ||
               (is_optimizers(one.id) && is_optimizers(other.id));
      };
      const auto other = std::ranges::find_if(kept, clashes);
      if (other == kept.end()) {
        kept.push_back(one);
      } else if (peak_of(one.id) < peak_of(other->id)) {
        *other = one;
      }
    }
    return kept;
  }

  // The plan is a row of its own, and exact.
  static bool is_of_ullage(const std::string& id) { return id == "run_in_budget" || id == "least_budget"; }
  static bool is_optimizers(const std::string& id) { return id == "foreach_false" || id == "fused_optimizer"; }

  Bytes peak_of(const std::string& id) const {
    const auto found = std::ranges::find_if(advice_.rows, [&](const Row& row) { return row.id == id; });
    return found == advice_.rows.end() ? Bytes{} : found->peak.value_or(Bytes{});
  }

  std::optional<Row> row_of_set(const std::vector<Trial>& set) {
    const Trial all = advise::together(set);
    Row row = row_tried(all);
    row.name = "together: " + row.name;
    return row.peak ? std::optional(row) : std::nullopt;
  }

  AdviseRuns& runs_;
  const Question& question_;
  const AdviseOptions& options_;
  Progress& progress_;
  std::ostream& err_;
  Clock::time_point began_ = Clock::now();
  Advice advice_;
  Tried plain_;
  advise::Facts facts_;
  std::vector<Trial> tried_;  // those that ran to the end of their steps
  struct Timed {
    std::string id;
    Seconds step;
  };
  std::vector<Timed> steps_;
  std::vector<std::pair<Trial, bool>> to_time_;  // those that fit, and whether it took `if_refused`
  bool interrupted_ = false;
  Tried stopped_;
};

void write_answer(const AdviseOptions& options, const Advice& advice, std::ostream& out) {
  if (options.json) {
    report::write_json(advice, out);
  } else {
    const auto style = terminal_style(STDOUT_FILENO, [](const char* name) { return std::getenv(name); });
    report::write_terminal(advice, style, options.top, out);
  }
  out.flush();
}

Result<std::unique_ptr<AdviseRuns>> runs_for(const AdviseOptions& options, const Question& question, Launch program,
                                             const Result<TorchFound>& torch, Progress& progress, Streams streams) {
  ULLAGE_TRY_VALUE(ScratchFolder scratch, ScratchFolder::make());
  if (question.card) {
    if (!torch) return torch.error();
    ULLAGE_TRY_VALUE(DryRunner runner, DryRunner::make(*torch));
    return dry_runs(std::move(program), std::move(runner), question.device, *question.card, Seconds{options.seconds},
                    std::move(scratch));
  }
  program.preload = preload_of(streams.err);
  store::SpillPlace spill;
  if (Result<store::SpillPlace> place = store::default_spill_place()) spill = std::move(*place);
  const Bytes machine = auto_budget(read_machine_memory(options.roots));
  return cpu_runs(std::move(program), question.memory, machine, std::move(spill), options.here, progress,
                  std::move(scratch));
}

int advise_program(const AdviseOptions& options, Streams streams) {
  std::variant<Launch, Refusal> found = find_target(options.target, "advise");
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refuse(*refusal, "advise", streams.err);
  Launch& program = std::get<Launch>(found);
  program.roots = options.roots;
  const Result<TorchFound> torch = find_torch(program);
  const Result<Question> question = read_question(options, torch && torch->has_cuda);
  if (!question) return refused_as(question.error(), streams.err);
  Progress progress(streams.err, ::isatty(STDERR_FILENO) != 0);
  const std::vector<std::string> words = program.words;
  Result<std::unique_ptr<AdviseRuns>> runs = runs_for(options, *question, std::move(program), torch, progress, streams);
  if (!runs) return refused_as(runs.error(), streams.err);
  Adviser adviser(**runs, *question, options, progress, streams.err);
  const std::optional<Tried> stopped = adviser.work();
  progress.pause();
  if (stopped) {
    if (stopped->interrupted) return stopped->exit_code;
    streams.err << "ullage: " << stopped->error << (stopped->last_lines.empty() ? "" : "; its last lines:") << '\n';
    for (const std::string& line : stopped->last_lines) streams.err << "ullage: " << line << '\n';
    return to_int(ExitCode::Failed);
  }
  Advice advice = adviser.advice();
  advice.command = words;
  advice.device = question->card ? std::string(question->card->model.product) : "cpu";
  advice.memory = question->memory;
  write_answer(options, advice, streams.out);
  return to_int(ExitCode::Done);
}

// Of a recording or a message only what explain computes can be told.
int advise_file(const AdviseOptions& options, Streams streams) {
  if (options.target.size() > 1)
    return refused_as(wrong(fmt::format("advise takes one file, there are {}", options.target.size()), ""),
                      streams.err);
  if (!options.vary.empty() || options.device)
    return refused_as(wrong("a file cannot be run: only --memory goes with it", options.device ? "--device" : "--vary"),
                      streams.err);
  const std::string& file = options.target.front();
  Advice advice;
  if (options.memory) {
    Result<Bytes> size = parse_bytes(*options.memory);
    if (!size) return refused_as(wrong(size.error().message, "--memory"), streams.err);
    advice.memory = *size;
  }
  const auto began = Clock::now();
  const Result<trace::Input> input = read::read_input_file(file);
  if (!input) return refuse({to_int(ExitCode::BadInput), input.error().text()}, "advise", streams.err);
  const auto diagnoses = diagnose::diagnose(*input, {file, std::nullopt, std::nullopt});
  if (diagnoses.empty())
    return refuse({to_int(ExitCode::BadInput), file + ": has nothing to advise on"}, "advise", streams.err);
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
  for (const diagnose::Remedy& remedy : diagnosis.remedies) {
    Row row = row_of(remedy, advice.plain.peak);
    if (row.peak && is_comparable) row.fits = *row.peak <= advice.memory;
    advice.rows.push_back(std::move(row));
  }
  advice.notes.emplace_back("a file cannot be run, so nothing was tried: ullage advise -- COMMAND tries");
  advise::sort_rows(advice);
  advice.wall = Seconds{std::chrono::duration<double>(Clock::now() - began).count()};
  write_answer(options, advice, streams.out);
  return to_int(ExitCode::Done);
}

}  // namespace

CLI::App* add_advise(CLI::App& app, AdviseOptions& options) {
  CLI::App* verb = app.add_subcommand("advise", "try the remedies on a program, and say which of them make it fit");
  set_usage(*verb,
            "ullage advise [OPTIONS] --device CARD [--vary NAME --at NAME=X] -- COMMAND\n"
            "       ullage advise [OPTIONS] --memory SIZE [--vary NAME --at NAME=X] -- COMMAND\n"
            "       ullage advise [--memory SIZE] FILE");
  verb->group("Verbs");
  verb->add_option("--device", options.device,
                   "run COMMAND on this card, which need not be there (rtx3060, cuda:8GiB);\nCOMMAND's torch must be a "
                   "CUDA build, its text is not changed")
      ->type_name("CARD|cuda[:SIZE]");
  verb->add_option("--memory", options.memory,
                   "run COMMAND on this machine's CPU, and judge by this much memory;\nauto: what this machine gives, "
                   "less 5 %")
      ->type_name("SIZE|auto");
  verb->add_option("--vary", options.vary,
                   "a size of COMMAND, written {NAME} there, whose largest value that\nfits is looked for")
      ->type_name("NAME");
  verb->add_option("--at", options.at, "the value that it should run with")->type_name("NAME=X");
  verb->add_option("--seconds", options.seconds, "begin no run after this time; default: 120")->type_name("N");
  verb->add_option("--top", options.top, "how many rows to show; 0: all; default: 12")->type_name("N");
  verb->add_flag("--here", options.here,
                 "on the CPU: run COMMAND in this folder; without it, in an empty one\nthat is removed");
  verb->add_flag("--json", options.json, "the answer as JSON (docs/cli.md)");
  verb->footer(
      "COMMAND is run once as it is and once with each remedy, and ended after its third step. A\n"
      "remedy is switched on from outside; the answer says what to write to have it for good.\n"
      "FILE is a recording, a snapshot or a log: nothing is run, and what each remedy saves is computed.\n"
      "Exit code: 0 the answer is on stdout; 1 the program failed; 2 wrong use; 3 FILE cannot be read.");
  return verb;
}

int run_advise(const AdviseOptions& options, Streams streams) {
  if (options.target.empty()) {
    return refused_as(wrong("nothing to advise on: write -- and a command, or name a file", ""), streams.err);
  }
  if (options.target.front() == "--") return advise_program(options, streams);
  return advise_file(options, streams);
}

}  // namespace ullage::cli
