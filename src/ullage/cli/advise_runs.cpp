// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/advise_runs.h"

#include "ullage/base/sizes.h"
#include "ullage/cli/knobs.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/switches.h"
#include "ullage/predict/predict.h"
#include "ullage/read/input.h"
#include "ullage/report/advice_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSteps = 3;
constexpr std::uint64_t kPlannedSteps = 8;  // a plan is made once a step was seen, and is followed after that
constexpr int kInterrupted = 128;           // exit codes above it are signals

// Returns the program of an order: its knobs filled in, and what the trial has the launcher switch on. `more`: words
// for switches.py in addition to the trial's. `facts` gets the folder of the run's facts.
Launch program_of(const Launch& program, const TryOrder& order, Switches& switches, fs::path& facts,
                  const std::string& more = "") {
  Launch launch = program;
  launch.words = fill(program.words, order.knobs);
  std::string words = order.trial != nullptr ? order.trial->switches : "";
  if (order.second_try) words += " " + order.trial->if_refused;
  facts = switches.add_to(launch, words + " " + more);
  if (order.trial != nullptr && !order.trial->allocator.empty()) {
    // The newer name counts where both are set.
    const char* name = std::getenv("PYTORCH_ALLOC_CONF") != nullptr ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
    launch.environment.emplace_back(name, order.trial->allocator);
  }
  return launch;
}

std::string place_text(const report::DryReport::Place& place) {
  return place.file.empty() ? "" : fmt::format(" at {}:{}", fs::path(place.file).filename().string(), place.line);
}

std::string one_line(std::string text) {
  constexpr std::size_t kMost = 160;
  if (const std::size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

// The card's rates as switches.py reads them. A launch takes about 5 us on any card.
std::string rates_of(const drycard::CardModel& card) {
  return fmt::format("fp32:{:.4g},tf32:{:.4g},half:{:.4g},bytes:{:.4g},launch:5e-6", card.fp32_tflops * 1e12,
                     card.tf32_rate(), card.half_tflops * 1e12, card.memory_rate());
}

// Keeps of a history what the order asks for. Tried::peak must be set before.
void keep_history(trace::Input history, const TryOrder& order, Tried& tried) {
  if (order.curve) tried.curve = report::curve_of(history, tried.peak);
  if (order.history) tried.history = std::move(history);
}

std::string filled_text(const report::DryReport::HostFilled& filled) {
  return fmt::format("the program filled this machine's memory{}: it held {} when {} were left",
                     place_text(filled.place), to_string(filled.held), to_string(filled.left));
}

class DryRuns final : public AdviseRuns {
 public:
  DryRuns(Launch program, DryRunner runner, std::string device, DryCard card, ScratchFolder scratch)
      : program_(std::move(program)),
        runner_(std::move(runner)),
        device_(std::move(device)),
        card_(card),
        switches_(std::move(scratch)) {}

  Tried run(const TryOrder& order) override {
    DryOrder dry{device_, card_};
    dry.refuses = order.refuses, dry.deadline = order.deadline;
    dry.history = order.history || order.curve, dry.quiet_program = true, dry.steps = kSteps;
    dry.own_ports = true;
    fs::path facts;
    if (order.planned) return run_planned(program_of(program_, order, switches_, facts), dry);
    const std::string rates = order.timed ? "costs=" + rates_of(card_.model) : "";
    auto ran = runner_.run(program_of(program_, order, switches_, facts, rates), dry);
    Tried tried;
    if (const auto* refusal = std::get_if<Refusal>(&ran)) {
      tried.error = refusal->message, tried.exit_code = refusal->exit_code;
      return tried;
    }
    auto& done = std::get<DryDone>(ran);
    tried.facts = advise::read_facts(facts);
    tried.step = tried.facts.step;
    tried.last_lines = std::move(done.last_lines);
    const report::DryReport& report = done.report;
    tried.exit_code = report.exit_code, tried.interrupted = SignalForwarder::received() != 0;
    tried.peak = report.most_taken(), tried.host_peak = report.host_peak;
    for (const report::DryReport::Card& card : report.cards)
      tried.tensors = std::max(tried.tensors, card.allocated + card.context);
    if (report.ended_by == report::DryReport::EndedBy::Seconds) {
      tried.end = Tried::End::TimeOver;
    } else if (report.ran_out()) {
      tried.end = Tried::End::RanOut;
      if (!report.refused.empty()) {
        const report::DryReport::Refused& last = report.refused.back();
        tried.error = fmt::format("{} more are refused{}, after {} were taken", to_string(last.request),
                                  place_text(last.place), to_string(tried.peak));
      }
    } else if (report.exit_code == 0 && report.used_the_card()) {
      tried.end = tried.peak <= Bytes{card_.model.total} ? Tried::End::Fits : Tried::End::RanOut;
    } else if (report.exit_code == 0) {
      tried.error = "the program never used the card";
    } else if (report.host_filled) {
      tried.error = filled_text(*report.host_filled);
    } else {
      tried.error = report.error
                        ? one_line(report.error->type + place_text(report.error->place) + ": " + report.error->text)
                        : fmt::format("the program ended with exit code {}", report.exit_code);
    }
    if (!done.history.empty()) {
      if (Result<trace::Input> input = read::read_input_file(done.history.string()))
        keep_history(std::move(*input), order, tried);
    }
    return tried;
  }

  std::size_t side_by_side(Bytes host_peak) const override {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const Bytes free = auto_budget(read_machine_memory(program_.roots));
    if (free == Bytes{} || host_peak == Bytes{}) return 1;
    return std::clamp<std::size_t>(free.count / host_peak.count, 1, cores);
  }

 private:
  Tried run_planned(const Launch& launch, DryOrder dry) {
    const Bytes memory{card_.model.total};
    dry.has_budget = true, dry.history = false, dry.steps = kPlannedSteps;
    auto ran = runner_.run_in_budget(launch, dry, memory);
    Tried tried;
    if (const auto* refusal = std::get_if<Refusal>(&ran)) {
      tried.error = refusal->message, tried.exit_code = refusal->exit_code;
      return tried;
    }
    auto& done = std::get<DryBudgetDone>(ran);
    const report::RunReport& report = done.report;
    tried.last_lines = std::move(done.last_lines);
    tried.exit_code = report.end.exit_code, tried.interrupted = SignalForwarder::received() != 0;
    tried.peak = report.end.dry->peak, tried.plan = report.plan, tried.moved_out = report.moving.out;
    tried.locked = report.end.dry->pinned_peak;
    tried.error = one_line(report.message);
    if (report.end.out_of_time) {
      tried.end = Tried::End::TimeOver;
    } else if (!report.attached) {
      tried.error = "Ullage's runtime was not loaded; it is built for one version of torch";
    } else if (report.end.dry->findings > 0 && report.outcome == report::Outcome::Done) {
      tried.error = one_line(report.end.dry->finding_texts.front());
    } else if (report.outcome == report::Outcome::Done) {
      // A program may catch the error of a request that was refused, and go on.
      const bool fits = report.over_budget == Bytes{} && report.refused == 0;
      tried.end = fits ? Tried::End::Fits : Tried::End::RanOut;
    } else if (report.outcome == report::Outcome::Infeasible || report.refused > 0) {
      tried.end = Tried::End::RanOut;
    } else if (done.host_filled) {
      tried.error = filled_text(*done.host_filled);
    } else if (tried.error.empty()) {
      tried.error = fmt::format("the program ended with exit code {}", report.end.exit_code);
      if (!tried.last_lines.empty()) tried.error += ", and its last line is: " + one_line(tried.last_lines.back());
    }
    return tried;
  }

  Launch program_;
  DryRunner runner_;
  std::string device_;
  DryCard card_;
  Switches switches_;
};

class CpuRuns final : public AdviseRuns {
 public:
  CpuRuns(Launch program, Bytes memory, Bytes machine, store::SpillPlace spill, bool here, Progress& progress,
          ScratchFolder scratch)
      : program_(std::move(program)),
        memory_(memory),
        machine_(machine),
        spill_(std::move(spill)),
        here_(here),
        progress_(progress),
        switches_(std::move(scratch)) {}

  Tried run(const TryOrder& order) override {
    if (order.plainly) return run_plainly(order);
    fs::path facts;
    Launch launch = program_of(program_, order, switches_, facts, "time_steps");
    launch.environment.push_back(kDeferCompiler);  // as in `ullage run --memory`, which the peak is about
    const std::vector<std::string> words = launch.words;
    TakeRunner runner(std::move(launch), machine_, spill_, here_, progress_);
    auto ran = runner.run({order.trial != nullptr ? order.trial->name : "as it is", words, kSteps, "", order.deadline});
    if (auto* failure = std::get_if<Failure>(&ran)) return failed(std::move(*failure));
    Tried tried;
    tried.facts = advise::read_facts(facts);
    auto& done = std::get<TakeDone>(ran);
    if (done.file.takes.empty()) {
      tried.error = "nothing was recorded";
      return tried;
    }
    predict::Question question;
    // `ullage run` counts all processes, the workers of data loaders too. The plan is for the one that trains.
    tried.others = done.others;
    question.memory = saturating_sub(memory_, done.others);
    tried.prediction = predict::of_take(done.file, done.file.takes.front(), question);
    tried.prediction->memory = memory_, tried.prediction->others = done.others;
    tried.peak = tried.prediction->process_peak + done.others;
    tried.step = step_of(tried);
    tried.end = tried.peak <= memory_ ? Tried::End::Fits : Tried::End::RanOut;
    if (order.history || order.curve) keep_history(read::understood(std::move(done.file)), order, tried);
    return tried;
  }

  // One, because steps are measured, and runs at once would slow each other.
  std::size_t side_by_side(Bytes) const override { return 1; }

 private:
  // CPU time, or by the clock if the first run's optimizer did not show where its steps end. Never both in one answer.
  std::optional<Seconds> step_of(const Tried& tried) {
    if (!has_cpu_time_) has_cpu_time_ = tried.facts.process.has_value();
    if (*has_cpu_time_) return tried.facts.process ? std::optional(tried.facts.process->step) : std::nullopt;
    return tried.prediction->step > Seconds{} ? std::optional(tried.prediction->step) : std::nullopt;
  }

  static Tried failed(Failure failure) {
    Tried tried = tried_of(std::move(failure));
    tried.error = one_line(tried.error);
    return tried;
  }

  Tried run_plainly(const TryOrder& order) {
    fs::path facts;
    Launch launch = program_of(program_, order, switches_, facts, fmt::format("plain_run={}", kSteps));
    if (order.lean_malloc) launch.environment.emplace_back(advise::kLeanMalloc);
    const std::vector<std::string> words = launch.words;
    TakeRunner runner(std::move(launch), machine_, spill_, here_, progress_);
    const std::string name = (order.trial != nullptr ? order.trial->name : "as it is") + ", without Ullage";
    auto ran = runner.run_plainly({name, words, 0, "", order.deadline});
    if (auto* failure = std::get_if<Failure>(&ran)) return failed(std::move(*failure));
    Tried tried;
    tried.facts = advise::read_facts(facts);
    if (!tried.facts.process) {
      tried.error = "it ended before its second step";
      return tried;
    }
    const advise::Facts::Process& process = *tried.facts.process;
    // The launcher sees all processes, but only now and then. The process sees those that it started, at each step.
    tried.others = std::max(process.others, saturating_sub(std::get<Bytes>(ran), process.peak));
    tried.peak = process.peak + tried.others, tried.step = process.step;
    tried.end = tried.peak <= memory_ ? Tried::End::Fits : Tried::End::RanOut;
    return tried;
  }

  Launch program_;
  Bytes memory_, machine_;
  store::SpillPlace spill_;
  bool here_;
  Progress& progress_;
  Switches switches_;
  std::optional<bool> has_cpu_time_;  // none: nothing ran yet
};

}  // namespace

std::unique_ptr<AdviseRuns> dry_runs(Launch program, DryRunner runner, std::string device, DryCard card,
                                     ScratchFolder scratch) {
  return std::make_unique<DryRuns>(std::move(program), std::move(runner), std::move(device), card, std::move(scratch));
}

Tried tried_of(Failure failure) {
  Tried tried;
  tried.exit_code = failure.exit_code;
  tried.interrupted = failure.exit_code > kInterrupted && failure.lines.empty();
  if (failure.out_of_time) tried.end = Tried::End::TimeOver;
  tried.error = failure.lines.empty() ? "interrupted" : failure.lines.back();
  tried.last_lines = std::move(failure.lines);
  return tried;
}

std::unique_ptr<AdviseRuns> cpu_runs(Launch program, Bytes memory, Bytes machine, store::SpillPlace spill, bool here,
                                     Progress& progress, ScratchFolder scratch) {
  return std::make_unique<CpuRuns>(std::move(program), memory, machine, std::move(spill), here, progress,
                                   std::move(scratch));
}

}  // namespace ullage::cli
