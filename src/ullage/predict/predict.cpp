// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/predict.h"

#include "ullage/base/sizes.h"
#include "ullage/predict/common_part.h"
#include "ullage/predict/evaluation.h"
#include "ullage/predict/figures.h"
#include "ullage/predict/input_work.h"
#include "ullage/predict/largest.h"
#include "ullage/predict/lift.h"
#include "ullage/predict/op_times.h"
#include "ullage/predict/outside.h"
#include "ullage/predict/parting.h"
#include "ullage/predict/event_text.h"
#include "ullage/predict/worker_ops.h"
#include "ullage/trace/meaning/levels.h"

#include <algorithm>
#include <utility>

// GCC 12 warns without reason about members of an alternative that a moved variant does not hold.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace ullage::predict {
namespace {

EventId end_of_step(const trace::Take& take, const trace::Steps& steps, std::size_t i) {
  return i + 1 < steps.begins.size() ? steps.begins[i + 1] : take.trace.end();
}

// The whole steps whose times count: without the first, which contains the loading, unless it is the only one.
std::vector<std::size_t> counted(const trace::Steps& steps) {
  std::vector<std::size_t> which;
  for (std::size_t i = steps.whole() > 1 ? 1 : 0; i < steps.whole(); ++i) which.push_back(i);
  return which;
}

// How long one step takes: the median of the counted steps; zero if the times are not known. For an evaluated take the
// times are the estimates of op_times.h.
Seconds step_time(const trace::Take& take, const trace::Steps& steps) {
  std::vector<double> times;
  for (const std::size_t i : counted(steps)) {
    const EventId begin = steps.begins[i], end = end_of_step(take, steps, i);
    if (begin >= end || end > take.trace.end()) continue;
    const auto& from = take.trace.events[begin.value].at;
    const auto& to = take.trace.events[end.value - 1].at;
    if (from && to && *to >= *from) times.push_back(double((*to).count - (*from).count) * 1e-6);
  }
  if (times.empty()) return {};
  std::ranges::sort(times);
  return Seconds{times[times.size() / 2]};
}

Error bad_question(std::string message) { return {Error::Kind::BadArgument, std::move(message), ""}; }

// The take at exactly these values; null if there is none.
const trace::Take* take_at(const trace::TraceFile& file, const std::vector<Knob>& at) {
  const auto is_there = [&](const trace::Take& take) { return std::ranges::is_permutation(take.knobs, at); };
  const auto found = std::ranges::find_if(file.takes, is_there);
  return found == file.takes.end() ? nullptr : &*found;
}

std::optional<Error> wrong_knobs(const trace::TraceFile& file, const std::vector<Knob>& at) {
  if (file.takes.empty()) return bad_question("the file has no take; record takes with 'ullage predict --keep FILE'");
  const std::vector<Knob>& knobs = file.takes[0].knobs;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (std::ranges::find(knobs, at[i].name, &Knob::name) == knobs.end()) {
      return bad_question("the takes do not vary '" + at[i].name + "'; they vary " +
                          (knobs.empty() ? "nothing" : knobs_text(knobs)));
    }
    if (std::ranges::count(at, at[i].name, &Knob::name) > 1) {
      return bad_question("'" + at[i].name + "' is given twice; give it once");
    }
  }
  for (const Knob& knob : knobs) {
    if (std::ranges::find(at, knob.name, &Knob::name) == at.end()) {
      return bad_question("the takes vary '" + knob.name + "', and no value for it is given; add --at " + knob.name +
                          "=N");
    }
  }
  return std::nullopt;
}

// The error if the target changes a knob that has one value in all takes.
std::optional<Error> other_than_the_takes(const trace::Take& take, const Grid& grid, const std::vector<Knob>& at) {
  for (const Knob& knob : take.knobs) {
    if (std::ranges::find(grid.axes, knob.name, &Grid::Axis::name) != grid.axes.end()) continue;
    const std::int64_t asked = std::ranges::find(at, knob.name, &Knob::name)->value;
    if (asked == knob.value) continue;
    return bad_question("every take is at " + knob.name + "=" + std::to_string(knob.value) +
                        ", so nothing is known of " + knob.name + "=" + std::to_string(asked) +
                        "; record takes at several values of it");
  }
  return std::nullopt;
}

std::optional<Error> below_the_takes(const Grid& grid, const std::vector<Knob>& at) {
  for (const Grid::Axis& axis : grid.axes) {
    const Knob& knob = *std::ranges::find(at, axis.name, &Knob::name);
    if (knob.value >= axis.values.front()) continue;
    return bad_question(axis.name + "=" + std::to_string(knob.value) + " is below the smallest take, " + axis.name +
                        "=" + std::to_string(axis.values.front()) +
                        "; record takes at smaller sizes, or run that size itself");
  }
  return std::nullopt;
}

// "2,066 events the same in 3 takes; 334 sizes affine in batch, 699 constant; checked at batch 4".
std::string why_exact(const trace::TraceFile& file, const Sequence& sequence, const Evaluation& evaluation) {
  std::string names, checks;
  bool affine = true;
  for (const Grid::Axis& axis : sequence.grid.axes) {
    names += (names.empty() ? "" : " and ") + axis.name;
    checks += (checks.empty() ? "" : " and ") + axis.name + " " + std::to_string(axis.values.back());
    affine &= axis.values.size() == 3 && sequence.grid.axes.size() == 1;
  }
  return count_of(evaluation.take.trace.events.size(), "event") + " the same in " +
         count_of(file.takes.size(), "take") + ", " + count_of(evaluation.following, "size") +
         (affine ? " affine in " : " on polynomials of ") + names + ", " + count_text(evaluation.constant) +
         " constant; checked at " + checks;
}

void make_bound(Prediction& prediction, const std::string& why) {
  prediction.law = Law::Bound;
  prediction.why += "; " + why;
}

// How many bytes more are live at the end of the last whole step than at the end of the one before. Zero if there are
// fewer than three whole steps, because the first one creates optimizer state.
Bytes growth_of_steps(const Figures& found) {
  const trace::Steps& steps = found.steps;
  const std::vector<Bytes>& live = found.live;
  const std::size_t whole = steps.whole();
  if (whole < 3) return {};
  const auto end = [&](std::size_t step) {
    return step + 1 < steps.begins.size() ? steps.begins[step + 1].value : live.size();
  };
  const std::uint64_t before = end(whole - 2), last = end(whole - 1);
  return before == 0 || last == 0 ? Bytes{} : saturating_sub(live[last - 1], live[before - 1]);
}

// Makes the prediction a bound, with the reason, for each thing that keeps its figures from being exact.
void judge(const Evaluation& evaluation, Figures& found) {
  Prediction& prediction = found.prediction;
  if (evaluation.charges_bound) {
    make_bound(prediction, "the bytes that the program charges follow no law and are counted at their most");
  }
  if (found.lifted) {
    make_bound(
        prediction,
        prediction.peak_op + " makes the peak and may take scratch that follows no law, which is counted at its most");
  }
  if (!evaluation.exact_at(prediction.peak)) {
    make_bound(prediction, "at the peak several threads allocate in varying order, and the worst order is taken");
  }
  const Bytes more = growth_of_steps(found);
  if (more > Bytes{}) {
    make_bound(prediction, "each step leaves " + to_string(more) +
                               " more allocated, so this is the peak of only the first " +
                               count_of(found.steps.whole(), "step"));
  }
}

std::vector<std::string> not_seen(const trace::TraceFile& file, const trace::Take& take, const trace::Steps& steps) {
  std::vector<std::string> phases = file.phases_left_out;
  if (take.end == trace::Take::End::StepBorder && phases.empty()) {
    phases.push_back("what comes after step " + std::to_string(steps.whole()) + " (evaluation, sampling, checkpoints)");
  }
  return phases;
}

Prediction from(const trace::TraceFile& file, const Sequence& sequence, const Evaluation& evaluation,
                const std::vector<Slack>& allowed, const Question& question) {
  const Outside outside = outside_at(file, sequence, question.at, evaluation.take);
  Figures found = figures(evaluation.take, outside, allowed);
  Prediction& prediction = found.prediction;
  prediction.at = question.at;
  prediction.step = step_time(prediction.take, found.steps);
  prediction.phases_not_seen = not_seen(file, prediction.take, found.steps);
  prediction.memory = question.memory;
  judge(evaluation, found);
  if (!outside.known) prediction.why += "; what the process holds outside the pool is not in the takes";
  if (question.memory) {
    prediction.largest_square = largest_square(file, sequence, question.at, *question.memory);
    prediction.largest = largest_that_fits(file, sequence, question.at, *question.memory);
  }
  if (question.cuda) prediction.cuda = on_cuda(file, prediction.take, *question.cuda);
  return std::move(found.prediction);
}

// The answer if for some op not even a bound of its scratch is known.
std::optional<NeedsTakes> without_bound(const std::vector<Slack>& allowed, const trace::Take& target) {
  for (const Slack& slack : allowed) {
    if (slack.bytes < kNoBound) continue;
    NeedsTakes found;
    found.why =
        "nothing is known of the scratch of " + target.trace.ops[slack.at.value].name + " at sizes that were not run";
    return found;
  }
  return std::nullopt;
}

// Different: the takes do not do the same, or a size follows no law.
struct Different {
  NeedsTakes why;
};
using Compared = std::variant<Prediction, NeedsTakes, Different>;

// Answers from takes whose events can be compared one by one. `inputs`: as Sequence::inputs.
Result<Compared> compared(const trace::TraceFile& file, const Question& question, const std::vector<bool>& inputs) {
  ULLAGE_TRY_VALUE(const Sequence arranged, arrange(file));
  ULLAGE_TRY_VALUE(auto same, compare(file));
  if (const auto* difference = std::get_if<Difference>(&same)) {
    return Compared(Different{needs_takes(file, arranged, *difference, question.at)});
  }
  Sequence& sequence = std::get<Sequence>(same);
  sequence.inputs = inputs;
  auto evaluated = evaluate_take(file, sequence, question.at);
  if (const auto* off = std::get_if<Difference>(&evaluated)) {
    return Compared(Different{needs_takes(file, sequence, *off, question.at)});
  }
  Evaluation& evaluation = std::get<Evaluation>(evaluated);
  estimate_times(file.takes[sequence.order.back()], file.takes.front(), evaluation.take);
  const std::vector<Slack> allowed = slack_of_ops(file, sequence, evaluation.take);
  if (auto unbounded = without_bound(allowed, evaluation.take)) return Compared(std::move(*unbounded));
  const std::vector<Crossing> found = crossings(file, sequence, evaluation.take);
  if (!found.empty()) return Compared(needs_takes(file, sequence, found, question.at));
  const std::string why = why_exact(file, sequence, evaluation);
  Prediction prediction = from(file, sequence, evaluation, allowed, question);
  prediction.why = why + prediction.why;
  return Compared(std::move(prediction));
}

// Answers from what the takes have in common. Nothing if that is too little.
Result<std::optional<Prediction>> from_common_part(const trace::TraceFile& file, const Sequence& arranged,
                                                   const Question& question) {
  const std::optional<CommonPart> part =
      common_part(file, arranged.grid, arranged.order, arranged.grid.values_of(question.at));
  if (!part) return std::optional<Prediction>();
  ULLAGE_TRY_VALUE(Compared answer, compared(part->file, question, {}));
  auto* prediction = std::get_if<Prediction>(&answer);
  if (prediction == nullptr) return std::optional<Prediction>();
  const trace::Trace& trace = prediction->take.trace;
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const trace::Storage& storage = trace.storages[i];
    if (part->raised[i] && storage.born <= prediction->peak && prediction->peak < storage.died)
      prediction->lawless += storage.bytes;
  }
  make_bound(*prediction, "the sizes tried have " + count_of(part->ops, "op") + " in common, and up to " +
                              count_text(part->rest) + " more; " + to_string(prediction->lawless) +
                              " at the peak follow no law and are counted in proportion");
  return std::optional(std::move(*prediction));
}

// Answers from takes without worker ops, so that the order of their ops can be compared. If the takes differ, tries
// again without the ops that only prepare inputs.
Result<Compared> from_other_sizes(const trace::TraceFile& file, const Question& question) {
  ULLAGE_TRY_VALUE(const Sequence arranged, arrange(file));
  if (auto error = other_than_the_takes(file.takes.front(), arranged.grid, question.at)) return *error;
  if (auto error = below_the_takes(arranged.grid, question.at)) return *error;
  ULLAGE_TRY_VALUE(Compared answer, compared(file, question, {}));
  if (!std::holds_alternative<Different>(answer)) return answer;
  const std::optional<InputWork> work = without_input_work(file, arranged.grid, arranged.order);
  if (!work) return answer;
  Result<Compared> again = compared(work->file, question, work->inputs);
  if (!again) return answer;  // the knob changes nothing but inputs
  if (auto* prediction = std::get_if<Prediction>(&*again)) {
    make_bound(*prediction,
               "ops that only prepare inputs do not do the same at all sizes, and what they hold is "
               "counted at its most");
  }
  if (std::holds_alternative<Different>(*again)) {
    // Compares without what those ops hold. A difference that is left is in other ops, and is the answer. If none is
    // left, the takes differ only in how inputs are prepared, and the first difference is the answer.
    const auto alone = without_input_work(file, arranged.grid, arranged.order, HeldByThem::LeftOut);
    again = compared(alone->file, question, alone->inputs);
    if (!again || !std::holds_alternative<Different>(*again)) return answer;
  }
  return again;
}

Result<Compared> from_takes(const trace::TraceFile& file, const Question& question) {
  ULLAGE_TRY_VALUE(Compared answer, from_other_sizes(file, question));
  if (!question.from_common_part || !std::holds_alternative<Different>(answer)) return answer;
  ULLAGE_TRY_VALUE(const Sequence arranged, arrange(file));
  ULLAGE_TRY_VALUE(std::optional<Prediction> bound, from_common_part(file, arranged, question));
  return bound ? Compared(std::move(*bound)) : answer;
}

}  // namespace

Result<std::variant<Prediction, NeedsTakes>> predict(const trace::TraceFile& file, const Question& question) {
  using Answer = std::variant<Prediction, NeedsTakes>;
  if (auto error = wrong_knobs(file, question.at)) return *error;
  const trace::Take* measured = take_at(file, question.at);
  if (measured != nullptr && file.takes.size() == 1) return Answer(of_take(file, *measured, question));
  const std::optional<trace::TraceFile> plain = without_worker_ops(file);
  ULLAGE_TRY_VALUE(Compared answer, from_takes(plain ? *plain : file, question));
  if (auto* prediction = std::get_if<Prediction>(&answer)) return Answer(std::move(*prediction));
  // If the takes do not suffice, the answer is the take at the size asked for, if there is one.
  if (measured != nullptr) return Answer(of_take(file, *measured, question));
  if (auto* different = std::get_if<Different>(&answer)) return Answer(std::move(different->why));
  return Answer(std::move(std::get<NeedsTakes>(answer)));
}

Prediction of_take(const trace::TraceFile& file, const trace::Take& take, const Question& question) {
  const Outside outside = outside_of(take);
  const std::uint32_t threads = take.process.threads;
  Bytes unseen;
  std::uint64_t lost = 0;
  for (const trace::Gap& gap : take.gaps) lost += gap.events;
  if (lost > 0) {
    const auto peak = trace::find(take.trace, trace::levels(take.trace), trace::At::Peak);
    unseen = saturating_sub(take.process.pool_live_peak, peak->live);
  }
  Figures found = figures(take, outside, {}, unseen);
  Prediction& prediction = found.prediction;
  prediction.law = Law::None;
  prediction.measured = true;
  prediction.why = "measured: " + count_of(take.trace.events.size(), "event") + " of one run" +
                   (take.knobs.empty() ? "" : " at " + knobs_text(take.knobs));
  if (lost > 0) prediction.why += "; " + count_of(lost, "event") + " in the middle were not kept";
  if (take.end == trace::Take::End::OutOfMemory) prediction.why += "; it ran out of memory, so more is needed";
  if (!outside.known) prediction.why += "; what the process held outside the pool is not known";
  prediction.take.process.threads = threads;
  prediction.step = step_time(prediction.take, found.steps);
  prediction.phases_not_seen = not_seen(file, take, found.steps);
  prediction.memory = question.memory;
  if (question.cuda) prediction.cuda = on_cuda(file, prediction.take, *question.cuda);
  return std::move(found.prediction);
}

}  // namespace ullage::predict
