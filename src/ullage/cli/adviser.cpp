// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/adviser.h"

#include "ullage/base/sizes.h"
#include "ullage/cli/alarm.h"
#include "ullage/cli/knobs.h"
#include "ullage/cli/option_trials.h"
#include "ullage/cli/planned_fit.h"
#include "ullage/cli/side_by_side.h"
#include "ullage/cli/size_search.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/report/advice_curve.h"
#include "ullage/report/command_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using advise::Advice;
using advise::Row;
using advise::Trial;
using Clock = std::chrono::steady_clock;

// Returns the row of a remedy that explain worked out. `peak` is the plain program's, if it is known. Leaves `fits`
// open.
Row row_of(const diagnose::Remedy& remedy, std::optional<Bytes> peak) {
  Row row;
  row.id = remedy.id, row.name = remedy.id, row.action = remedy.action, row.note = remedy.why;
  std::ranges::replace(row.name, '_', ' ');
  row.effect_known = false;
  row.basis = remedy.saves ? advise::Basis::Computed : advise::Basis::NotTried;
  if (remedy.saves && peak) row.peak = saturating_sub(*peak, *remedy.saves);
  return row;
}

constexpr const char* kPlanTookLong = "not planned in half of the time that was left; --seconds gives more";

// Every method may run the program several times.
class Adviser final {
 public:
  Adviser(AdviseRuns& runs, const AdviseQuestion& question, Progress& progress, std::ostream& err)
      : question_(question), runner_(runs, question, progress), progress_(progress), err_(err) {
    advice_.device = on_card() ? std::string(question.card->model.product) : "cpu";
    advice_.memory = question.memory;
  }

  std::variant<Advice, Tried> work() {
    if (auto stopped = run_plain()) return *stopped;
    add_plan();
    try_each();
    try_together();
    refine_size();
    add_plans_with_fewer_levers();
    add_plain_runs();
    add_times();
    add_computed();
    if (runner_.is_interrupted()) return runner_.stopped();
    if (!on_card() && plain_.choices.empty()) {
      advice_.notes.push_back(
          "after a remedy is written in, run the program with " +
          report::whole_command_line("run --memory " + report::as_stated(question_.memory), target()) +
          ": the peaks are those of such a run. Without Ullage a process holds more, because malloc keeps what is "
          "freed");
    }
    advise::sort_rows(advice_);
    advice_.runs = runner_.runs_made();
    advice_.wall = Seconds{std::chrono::duration<double>(Clock::now() - question_.began).count()};
    return advice_;
  }

 private:
  bool on_card() const { return runner_.on_card(); }
  std::vector<std::string> target() const {
    return question_.knob ? fill(question_.target, {*question_.knob}) : question_.target;
  }

  std::optional<Tried> run_plain() {
    TryOrder as_it_is = runner_.order();
    as_it_is.history = true, as_it_is.refuses = !on_card();
    const Clock::time_point began = Clock::now();
    as_it_is.choices_known = [&](const std::vector<Choice>& choices) { options_.begin(choices, Clock::now() - began); };
    Tried tried = runner_.run(as_it_is, "the program as it is");
    plain_took_ = Clock::now() - began - options_.took();
    if (runner_.is_interrupted()) return tried;
    Row& plain = advice_.plain;
    plain.name = "as it is";
    if (tried.end == Tried::End::Failed && on_card()) {
      as_it_is.refuses = true;
      tried = runner_.run(as_it_is, "the program as it is, on a card that refuses requests");
      if (tried.end == Tried::End::RanOut)
        advice_.notes.emplace_back(
            "how much it needs is not known: on a card of unlimited memory it fails too, for another reason");
    } else {
      plain.peak = tried.peak;
    }
    if (tried.end == Tried::End::Failed || runner_.is_interrupted()) return tried;
    facts_ = tried.facts;
    plain.fits = tried.end == Tried::End::Fits;
    plain.curve = std::move(tried.curve);
    if (tried.end == Tried::End::TimeOver) {
      // It did not reach its peak, so it needs at least the bytes that it had taken by then.
      plain.fits = tried.peak > question_.memory ? std::optional(false) : std::nullopt;
      plain.peak.reset();
      advice_.notes.push_back(
          fmt::format("the program as it is did not finish its third step: {1}; by then it had taken {0}",
                      to_string(tried.peak), runner_.time_over()));
    }
    if (!on_card() && !plain.fits.value_or(true)) advice_.refused = tried.error;
    plain_ = std::move(tried);
    return std::nullopt;
  }

  // On a card: runs the plain program again where requests are refused, and notes the last refused one. If the program
  // fits there after all, notes that instead.
  void find_refusal() {
    if (!on_card() || advice_.plain.fits.value_or(true) || runner_.is_over()) return;
    Tried refused = runner_.run(runner_.order(), "the program as it is, on a card that refuses requests");
    if (refused.end == Tried::End::RanOut) advice_.refused = refused.error;
    if (refused.end != Tried::End::Fits) return;
    advice_.plain.fits = true, advice_.plain.peak = refused.peak, advice_.plain.curve = std::move(refused.curve);
  }

  // On the CPU the plan of `ullage run` is one of the remedies. It changes no bit of the results.
  void add_plan() {
    if (!plain_.prediction || plain_.end != Tried::End::RanOut || runner_.is_over()) return;
    predict::Prediction& prediction = *plain_.prediction;
    Row row;
    row.id = "ullage_run", row.name = "plan";
    row.basis = advise::Basis::NotTried;
    // Ends halfway, because the search for a better plan could take all the time that the remedies need.
    const Alarm alarm(runner_.halfway());
    progress_.stage("planning");
    const std::optional<report::PlanReport> report = add_planned_fit(prediction, progress_, err_, alarm.flag());
    progress_.pause();
    Bytes memory = question_.memory;
    if (prediction.planned && (prediction.planned->fits || !alarm.flag()->load())) {
      const predict::PlannedFit& plan = *prediction.planned;
      row.basis = advise::Basis::Planned;
      row.name = plan.fits ? fmt::format("plan: {} values recomputed, {} moved", plan.recomputed, plan.spilled)
                           : "plan: the least memory for which one was found";
      row.fits = plan.fits;
      row.peak = memory = plan.fits ? question_.memory : plan.least + plain_.others;
      if (plan.fits) row.more_time = plan.more_time;
      if (plan.fits && advice_.plain.curve) row.curve = curve_of_plan(*report);
    } else if (alarm.flag()->load()) {
      row.note = kPlanTookLong;
    } else {
      return;  // `err_` says why
    }
    const bool is_stated = memory == question_.memory;
    row.action = report::whole_command_line(
        "run --memory " + (is_stated ? report::as_stated(memory) : report::as_option(memory)), target());
    advice_.rows.push_back(std::move(row));
  }

  // On a card the program runs under Ullage, held to the card's memory. It makes and follows its plan as on a real one.
  std::optional<Row> plan_on_card() {
    if (!on_card() || plain_.end != Tried::End::RanOut || runner_.is_over()) return std::nullopt;
    TryOrder order = runner_.order();
    order.planned = true, order.curve = false;
    order.deadline = runner_.halfway();  // planning could take all the time that the remedies need
    const Tried tried = runner_.run(order, "the plan of ullage run");
    Row row;
    row.id = "ullage_run", row.name = "plan", row.basis = advise::Basis::Planned;
    row.action =
        report::whole_command_line("run --device cuda --memory " + report::as_stated(question_.memory), target());
    if (tried.end == Tried::End::TimeOver || tried.end == Tried::End::Failed) {
      row.basis = advise::Basis::NotTried;
      row.note = tried.end == Tried::End::Failed ? "not planned: " + tried.error : kPlanTookLong;
      return row;
    }
    row.fits = tried.end == Tried::End::Fits;
    if (!*row.fits) {
      row.note = tried.error;
      return row;
    }
    row.peak = tried.peak;
    row.name = "plan: tensors are moved on demand";
    if (tried.plan)
      row.name = fmt::format("plan: {} ops recomputed, {} tensors moved", tried.plan->recomputes, tried.plan->spills);
    row.note = fmt::format(
        "{} left the card in the steps of this run, and {} of host memory was locked for them; what that "
        "costs is not known without a card",
        to_string(tried.moved_out), to_string(tried.locked));
    return row;
  }

  // If the plan recomputes and moves values, it is also made with each of the two left out. And it is made so that it
  // only moves what lives from step to step, such as optimizer state.
  void add_plans_with_fewer_levers() {
    if (!plain_.prediction || !plain_.prediction->planned) return;
    const predict::PlannedFit all = *plain_.prediction->planned;
    if (!all.fits || all.recomputed == 0 || all.spilled == 0) return;
    struct Part {
      const char* id;
      const char* name;
      plan::Levers levers;
    };
    Part parts[] = {{"plan_without_moves", "plan that moves nothing", {}},
                    {"plan_without_recomputes", "plan that recomputes nothing", {}},
                    {"plan_of_state", "plan that moves what lives from step to step alone", plan::kNoLevers}};
    parts[0].levers.spill = parts[0].levers.state = false;
    parts[1].levers.recompute = parts[1].levers.batch_norm = false;
    parts[2].levers.state = true;
    for (const Part& part : parts) {
      if (runner_.is_over()) return;
      const Alarm alarm(runner_.deadline());
      progress_.stage(part.name);
      const auto fit = planned_fit_with(part.levers, *plain_.prediction, progress_, err_, alarm.flag());
      if (!fit || (!fit->fits && alarm.flag()->load())) continue;
      Row row;
      row.id = part.id, row.basis = advise::Basis::Planned, row.fits = fit->fits;
      row.peak = fit->fits ? question_.memory : fit->least + plain_.others;
      row.name = part.name + (fit->fits ? fmt::format(": {} values recomputed, {} moved", fit->recomputed, fit->spilled)
                                        : std::string(": the least memory for which one was found"));
      if (fit->fits) row.more_time = fit->more_time, row.action = with_levers(part.levers);
      advice_.rows.push_back(std::move(row));
    }
  }

  // Returns what a person types for a plan with these levers alone. The plan is for the process that trains, so it gets
  // what the others leave of the memory.
  std::string with_levers(const plan::Levers& levers) const {
    std::string words;
    for (const plan::Lever& lever : plan::kLevers) {
      if (levers.*lever.on) words += (words.empty() ? "" : ",") + std::string(lever.word);
    }
    const std::string memory = report::as_stated(question_.memory);
    const std::string planned = report::as_stated(saturating_sub(question_.memory, plain_.others));
    return fmt::format("{}; ullage plan --memory {} --levers {} --out plan.json take.ullage; {}",
                       report::whole_command_line("run --record take.ullage --memory " + memory, target()), planned,
                       words, report::whole_command_line("run --plan plan.json --memory " + memory, target()));
  }

  advise::Curve curve_of_plan(const report::PlanReport& report) const {
    const Bytes beside = saturating_sub(question_.memory, report.planned->plan.budget);
    return report::curve_of(report.planned_levels, advice_.plain.curve->steps.size(), beside);
  }

  void try_each() {
    advise::Setting setting;
    setting.on_card = on_card();
    setting.has_bfloat16 = !on_card() || question_.card->model.major >= 8;
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      if (const char* set = std::getenv(name)) setting.allocator = set;
    }
    for (const char* name : {advise::kLeanMalloc.first, "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"})
      setting.sets_malloc = setting.sets_malloc || std::getenv(name) != nullptr;
    trials_ = advise::trials_for(facts_, setting);
    std::vector<TrialOutcome> outcomes(trials_.size());
    // The search of a size is a chain of runs, so it begins first. It ends here with the first size that fits.
    std::optional<Row> plan;
    needs_ = advice_.plain.peak;
    std::vector<std::function<void()>> work = {[&] { size_ = search_knob(Search::UntilOneFits); },
                                               [&] { plan = plan_on_card(); }, [&] { find_refusal(); }};
    for (std::size_t i = 0; i < trials_.size(); ++i)
      work.push_back([&, i] { outcomes[i] = runner_.outcome_of(trials_[i]); });
    const std::size_t at_once = runner_.side_by_side();
    side_by_side(work, at_once);
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      // Programs that ran at once may have disturbed each other, with a port or a file. So a failed one runs again
      // alone.
      if (at_once > 1 && outcomes[i].failed) outcomes[i] = alone(trials_[i], std::move(outcomes[i]));
      keep(trials_[i], std::move(outcomes[i]));
    }
    if (plan) advice_.rows.push_back(std::move(*plan));
    try_options();
  }

  // Goes on with the search of a size, once the remedies were tried.
  void refine_size() {
    if (!size_) return;
    advice_.rows.push_back(search_knob(Search::ToTheEnd).value_or(*size_));
    if (at_fitting_.step && !on_card()) steps_.push_back({size_->id, *at_fitting_.step});
  }

  TrialOutcome alone(const Trial& trial, TrialOutcome failed) {
    if (!runner_.is_over()) return runner_.outcome_of(trial);
    failed.row.basis = advise::Basis::NotTried;
    failed.row.note = "not tried: it failed beside other runs, and then " + runner_.time_over();
    return failed;
  }

  void try_options() {
    if (plain_.choices.empty()) return;
    if (plain_.prediction) {
      for (Row& row : sizes_by_law(*plain_.prediction, plain_.choices)) advice_.rows.push_back(std::move(row));
    }
    const ValueTried now{plain_.end == Tried::End::Fits, advice_.plain.peak};
    for (auto& [trial, outcome] : options_.finish(plain_.choices, now, plain_took_)) keep(trial, std::move(outcome));
  }

  void keep(const Trial& trial, TrialOutcome outcome) {
    const Row& row = outcome.row;
    // A plain remedy (Trial::is_plain) has an effect without Ullage only, so it is no part of a set.
    if (row.basis == advise::Basis::Tried && row.peak && !trial.is_plain)
      tried_.push_back(trial), tried_.back().effect = row.effect;
    if (outcome.step) steps_.push_back({row.id, *outcome.step, trial.is_plain});
    if (row.fits.value_or(false)) to_time_.emplace_back(trial, outcome.second_try);
    advice_.rows.push_back(std::move(outcome.row));
  }

  enum class Search { UntilOneFits, ToTheEnd };
  // Runs no size twice.
  std::optional<Row> search_knob(Search until) {
    if (!question_.knob || plain_.end == Tried::End::TimeOver) return std::nullopt;
    const Knob& knob = *question_.knob;
    const SizeTried at_first{plain_.end == Tried::End::Fits, needs_};
    const SizesFound found = search_sizes(knob.value, at_first, question_.memory, [&](std::int64_t size) {
      if (const auto known = sizes_tried_.find(size); known != sizes_tried_.end()) return std::optional(known->second);
      const bool enough = until == Search::UntilOneFits && !fitting_.empty();
      if (enough || runner_.is_over()) return std::optional<SizeTried>();
      TryOrder one = runner_.order();
      one.knobs = {Knob{knob.name, size}};
      Tried tried = runner_.judge(one, fmt::format("{} {}", knob.name, size));
      if (tried.end == Tried::End::Failed || tried.end == Tried::End::TimeOver) return std::optional<SizeTried>();
      const SizeTried result{tried.end == Tried::End::Fits, tried.peak};
      if (result.fits) at_fitting_ = std::move(tried), fitting_ = one.knobs;
      sizes_tried_.emplace(size, result);
      return std::optional(result);
    });
    if (!found.fits || *found.fits == knob.value) return std::nullopt;
    Row row;
    row.id = advise::kSmallerSize;
    const bool sure = found.too_large && *found.too_large - *found.fits == 1;
    row.name = fmt::format("{} {}: {}", knob.name, *found.fits,
                           sure ? "the largest that fits" : "fits; larger ones were not tried");
    row.effect = advise::Effect::Different;
    row.fits = true;
    row.peak = at_fitting_.peak, row.curve = at_fitting_.curve;
    if (*found.fits < knob.value) row.action = advise::smaller_size(knob, *found.fits);
    return row;
  }

  // If no single remedy makes the program fit at the wanted size, tries sets. The first set has all remedies that keep
  // the bits, the second also those that change the rounding, the third all. Then tries to take remedies out of a set
  // that fits, those with the strongest effect on results first.
  void try_together() {
    const auto fits = [](const Row& row) {
      return row.basis == advise::Basis::Tried && row.fits.value_or(false) && row.id != advise::kSmallerSize;
    };
    if (advice_.plain.fits.value_or(false) || std::ranges::any_of(advice_.rows, fits)) return;
    std::vector<Trial> all = compatible(tried_);
    std::ranges::stable_sort(all, [](const Trial& a, const Trial& b) { return a.effect < b.effect; });
    for (const advise::Effect most : {advise::Effect::SameBits, advise::Effect::Rounding, advise::Effect::Different}) {
      std::vector<Trial> set;
      std::ranges::copy_if(all, std::back_inserter(set), [&](const Trial& one) { return one.effect <= most; });
      if (set.size() < 2 || (most != advise::Effect::SameBits && !has(set, most))) continue;
      if (runner_.is_over()) break;
      std::optional<TrialOutcome> found = outcome_of_set(set);
      if (!found) continue;
      for (std::size_t at = set.size(); at-- > 0 && set.size() > 2 && !runner_.is_over();) {
        std::vector<Trial> fewer = set;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
        if (std::optional<TrialOutcome> its = outcome_of_set(fewer)) set = std::move(fewer), found = std::move(its);
      }
      keep(advise::together(set), std::move(*found));
      return;
    }
    if (runner_.is_over()) advice_.notes.push_back("sets of remedies were not tried: " + runner_.time_over());
  }

  static bool has(const std::vector<Trial>& set, advise::Effect effect) {
    return std::ranges::any_of(set, [&](const Trial& one) { return one.effect == effect; });
  }

  // Returns nothing if the set does not fit. A set that did not fit is not run again: without its only remedy of the
  // strongest effect, a set is the one before it.
  std::optional<TrialOutcome> outcome_of_set(const std::vector<Trial>& set) {
    const Trial all = advise::together(set);
    if (std::ranges::find(do_not_fit_, all.id) != do_not_fit_.end()) return std::nullopt;
    TrialOutcome outcome = runner_.outcome_of(all);
    outcome.row.name = "together: " + outcome.row.name;
    if (outcome.row.fits.value_or(false)) return outcome;
    do_not_fit_.push_back(all.id);
    return std::nullopt;
  }

  // If two remedies set the allocator, or two change the kind of optimizer step, only the one that took less stays.
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

  static bool is_optimizers(const std::string& id) { return id == "foreach_false" || id == "fused_optimizer"; }

  Bytes peak_of(const std::string& id) const {
    const auto found = std::ranges::find_if(advice_.rows, [&](const Row& row) { return row.id == id; });
    return found == advice_.rows.end() ? Bytes{} : found->peak.value_or(Bytes{});
  }

  // On the CPU a person may run the program without Ullage too. So the program as it is and each row that fits run once
  // more as plain processes, if this machine has room for them. A row that then does not fit surely runs with
  // kLeanMalloc too. The step of the program as it is in such a run is what times are compared with.
  void add_plain_runs() {
    constexpr std::uint64_t kMoreThanUnderUllage = 2;  // times the bytes held under Ullage; seen: 1.8
    const bool is_command = question_.target.front() == "--";
    if (on_card() || !is_command || !facts_.optimizer || plain_.end == Tried::End::TimeOver) return;
    const auto run = [&](TryOrder order, Row& row) {
      const bool has_room = *row.peak * kMoreThanUnderUllage <= question_.machine;
      if (runner_.is_over() || !has_room) return;
      order.plainly = true, order.curve = false;
      const auto tried = [&] { return runner_.run(order, row.name + ", without Ullage"); };
      const Tried plain = tried();
      if (plain.end != Tried::End::Fits && plain.end != Tried::End::RanOut) return;
      row.plainly = advise::Plainly{plain.peak, plain.others, std::nullopt};
      const bool as_it_is = &row == &advice_.plain;
      if (as_it_is) without_ullage_ = plain.step;
      if (row.plainly->fits_surely(question_.memory) || !has_lean_malloc()) return;
      if (as_it_is) row.plainly->lean = tried_lean();
      if (as_it_is || runner_.is_over()) return;
      order.lean_malloc = true;
      if (const Tried lean = tried(); lean.end == Tried::End::Fits || lean.end == Tried::End::RanOut)
        row.plainly->lean = lean.peak;
    };
    run(runner_.order(), advice_.plain);
    for (Row& row : advice_.rows) {
      if (row.basis != advise::Basis::Tried || !row.fits.value_or(false)) continue;
      TryOrder order = runner_.order();
      if (row.id == advise::kSmallerSize) {
        order.knobs = fitting_;
      } else {
        const auto found = std::ranges::find(to_time_, row.id, [](const auto& one) { return one.first.id; });
        if (found == to_time_.end() || found->first.is_plain) continue;
        order = runner_.order(&found->first), order.second_try = found->second;
      }
      run(order, row);
    }
  }

  // Returns the peak of the program as it is with kLeanMalloc, which is a remedy of its own.
  std::optional<Bytes> tried_lean() const {
    const auto trial = std::ranges::find_if(trials_, &Trial::is_plain);
    const auto row = std::ranges::find(advice_.rows, trial->id, &Row::id);
    return row == advice_.rows.end() ? std::nullopt : row->peak;
  }

  bool has_lean_malloc() const { return std::ranges::any_of(trials_, &Trial::is_plain); }

  void add_times() {
    if (advice_.rows.empty()) return;
    if (on_card()) {
      add_card_times();
    } else {
      add_measured_times();
    }
  }

  // Compares the step of every row with that of the program as it is without Ullage, if that was run. The person has
  // that program. All rows but plain remedies ran under Ullage, as their lines tell the person to run them.
  void add_measured_times() {
    std::optional<Seconds> recorded = plain_.step;
    if (!without_ullage_ && recorded && !steps_.empty() && !runner_.is_over()) {
      // Once more, so that a slow moment counts less.
      const std::optional<Seconds> again = runner_.run(runner_.order(), "the program as it is, for its time").step;
      if (again) recorded = std::min(*recorded, *again);
    }
    if (without_ullage_ && !facts_.process) without_ullage_.reset();  // no CPU time under Ullage to compare it with
    if (!recorded || recorded->count <= 0) return;
    const Seconds base = without_ullage_.value_or(*recorded);
    if (!without_ullage_) std::erase_if(steps_, &Timed::is_plain);
    for (Row& row : advice_.rows) {
      // A plan's time is relative to the program as it is under Ullage.
      if (row.basis == advise::Basis::Planned && row.more_time)
        row.more_time = (1 + *row.more_time) * recorded->count / base.count - 1;
    }
    set_times(base);
    const char* compared = without_ullage_ ? "compared with the program as it is without Ullage"
                                           : "compared with the program as it is under Ullage";
    advice_.time_basis = fmt::format(
        "of a step under `ullage run`, {}; measured here, one run for each remedy, noise is about 10 %", compared);
  }

  // Runs the program as it is, and with each trial that fits and changes its ops, once more. The ops are timed by the
  // card's rates.
  void add_card_times() {
    if (runner_.is_over()) return;
    if (!names_a_card(question_.device)) {
      advice_.notes.emplace_back("name a card (rtx3060, a100-40gb) to see times: of cuda:SIZE only the size is known");
      return;
    }
    std::optional<Seconds> plain;
    std::vector<std::optional<Seconds>> steps(to_time_.size());
    const auto time = [&](TryOrder order, const std::string& what) {
      order.refuses = false, order.timed = true, order.curve = false;
      return runner_.is_over() ? std::nullopt : runner_.run(order, what + ", for its time").step;
    };
    // A setting of the allocator changes no op, so with it alone a step takes as long as without it.
    const auto changes_ops = [&](std::size_t i) { return !to_time_[i].first.switches.empty() || to_time_[i].second; };
    std::vector<std::function<void()>> work = {[&] { plain = time(runner_.order(), "the program as it is"); }};
    for (std::size_t i = 0; i < to_time_.size(); ++i) {
      if (!changes_ops(i)) continue;
      work.push_back([&, i] {
        TryOrder with = runner_.order(&to_time_[i].first);
        with.second_try = to_time_[i].second;
        steps[i] = time(with, to_time_[i].first.name);
      });
    }
    side_by_side(work, runner_.side_by_side());
    if (!plain) return;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!changes_ops(i)) steps[i] = plain;
      if (steps[i]) steps_.push_back({to_time_[i].first.id, *steps[i]});
    }
    set_times(*plain);
    advice_.time_basis =
        "of a step, estimated: an op takes the longer of its arithmetic and its memory traffic at the card's "
        "published rates, plus 5 us a launch";
  }

  // Adds what explain computes from the recording of the plain program.
  void add_computed() {
    if (runner_.is_interrupted() || !plain_.history || !advice_.plain.peak) return;
    const auto diagnoses = diagnose::diagnose(*plain_.history, {"", std::nullopt, std::nullopt});
    if (diagnoses.empty()) return;
    std::vector<diagnose::Remedy> remedies;
    std::ranges::copy_if(diagnoses.front().remedies, std::back_inserter(remedies), [&](const diagnose::Remedy& one) {
      // The plan is a row of its own, and exact. A program that trains needs its backward pass.
      const bool is_plan = one.id == "run_in_budget" || one.id == "least_budget";
      return one.saves && !is_plan && !(one.id == "no_grad" && facts_.optimizer);
    });
    add_computed_rows(remedies, advice_);
  }

  const AdviseQuestion& question_;
  TrialRunner runner_;
  Progress& progress_;
  std::ostream& err_;
  Advice advice_;
  Tried plain_;
  Clock::duration plain_took_{};  // how long the first run of the program as it is took
  OptionTrials options_{question_.memory, runner_};
  advise::Facts facts_;
  std::vector<Trial> trials_;
  std::vector<Trial> tried_;             // trials that ran to the end of their steps, without plain ones
  std::vector<std::string> do_not_fit_;  // ids of sets
  struct Timed {
    std::string id;
    Seconds step;
    bool is_plain = false;  // it ran without Ullage
  };
  // The rows that were timed get their times, compared with `plain`, a step of the program as it is.
  void set_times(Seconds plain) {
    if (plain.count <= 0) return;
    for (Row& row : advice_.rows) {
      const auto found = std::ranges::find(steps_, row.id, &Timed::id);
      if (found != steps_.end()) row.more_time = found->step.count / plain.count - 1;
    }
  }

  std::vector<Timed> steps_;
  std::optional<Seconds> without_ullage_;  // a step of the program as it is
  std::optional<Bytes> needs_;             // the peak of the program as it is, if known, before find_refusal()
  std::optional<Row> size_;                // of the first size that fits
  std::map<std::int64_t, SizeTried> sizes_tried_;
  std::vector<Knob> fitting_;                    // the largest size that fits
  Tried at_fitting_;                             // the run at that size
  std::vector<std::pair<Trial, bool>> to_time_;  // trials that fit, and whether they needed `if_refused`
};

}  // namespace

void add_computed_rows(const std::vector<diagnose::Remedy>& remedies, Advice& advice) {
  const bool is_comparable = advice.memory > Bytes{} && advice.plain.peak;
  for (const diagnose::Remedy& remedy : remedies) {
    if (std::ranges::find(advice.rows, remedy.id, &Row::id) != advice.rows.end()) continue;
    Row row = row_of(remedy, advice.plain.peak);
    if (row.peak && is_comparable) row.fits = *row.peak <= advice.memory;
    advice.rows.push_back(std::move(row));
  }
}

std::variant<Advice, Tried> advise_on(AdviseRuns& runs, const AdviseQuestion& question, Progress& progress,
                                      std::ostream& err) {
  return Adviser(runs, question, progress, err).work();
}

}  // namespace ullage::cli
