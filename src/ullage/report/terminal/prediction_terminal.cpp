// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/prediction_report.h"
#include "ullage/report/terminal/terminal_bar.h"
#include "ullage/report/terminal/terminal_sections.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace ullage::report {
namespace {

using predict::Law;
using predict::Prediction;

constexpr std::size_t kOwners = 5;    // owners that are named, unless more are asked for
constexpr std::size_t kCudaRows = 6;  // rows of a card that are shown
constexpr std::size_t kWhyLines = 4;
constexpr unsigned kPredictionBarWidth = 64;  // columns; below 76 the legend has one part per line

// Adds the text as lines of its own, indented by `indent` blanks; at most `most` lines.
void add_wrapped(const std::string& text, std::size_t indent, std::size_t most, const TerminalStyle& style,
                 Lines& lines) {
  const Lines wrapped = wrap(clean(text, style.unicode), style.width - indent);
  for (std::size_t i = 0; i < wrapped.size() && i < most; ++i) {
    const bool cut = i + 1 == most && wrapped.size() > most;
    const std::string line = cut ? clip(wrapped[i] + " ....", style.width - indent) : wrapped[i];
    lines.push_back(std::string(indent, ' ') + line);
  }
}

// "at most 5.35 GiB (5747245056 bytes)"
std::string peak_text(const Prediction& prediction) {
  const std::string peak =
      fmt::format("{} ({} bytes)", to_string(prediction.process_peak), prediction.process_peak.count);
  if (prediction.measured) return peak + ", measured";
  switch (prediction.law) {
    case Law::Exact:
      return peak + ", exact";
    case Law::Bound:
      return "at most " + peak;
    case Law::None:
      break;
  }
  return peak + ", by no law";
}

Lines headline(const Prediction& prediction, const TerminalStyle& style) {
  Lines lines;
  const std::string head =
      fmt::format("Peak of the process at {}: {}", sizes_text(prediction.at), peak_text(prediction));
  for (const std::string& line : wrap(clean(head, style.unicode), style.width)) lines.push_back(bold(line, style));
  if (!prediction.why.empty()) add_wrapped(prediction.why, 2, kWhyLines, style, lines);
  if (prediction.others > Bytes{}) {
    add_wrapped(fmt::format("Other processes, such as a data loader's workers or other ranks, are expected to hold {}, "
                            "judging by the runs; it may be more",
                            to_string(prediction.others)),
                0, 2, style, lines);
  }
  return lines;
}

// "in step 2, backward: aten::convolution_backward (netG.main.6)"
std::string place_text(const Prediction& prediction) {
  std::string text;
  if (prediction.peak_step > 0) text = fmt::format("in step {}", prediction.peak_step);
  if (!prediction.peak_phase.empty()) text += (text.empty() ? "in " : ", ") + prediction.peak_phase;
  if (!prediction.peak_op.empty()) text += (text.empty() ? "in " : ": ") + prediction.peak_op;
  if (!prediction.peak_layer.empty()) text += fmt::format(" ({})", prediction.peak_layer);
  return text;
}

// One row per line, because their names are long.
Lines row_lines(const Prediction& prediction, TerminalStyle style) {
  diagnose::Bar bar;
  bar.total = prediction.process_peak;
  bar.of = "What it is made of:";
  for (const predict::Row& row : prediction.rows) {
    bar.parts.push_back({diagnose::Bar::Part::Kind::Live, row.name, row.bytes});
  }
  style.width = std::min(style.width, kPredictionBarWidth);
  return bar_lines(bar, style);
}

Lines owner_lines(const Prediction& prediction, const TerminalStyle& style) {
  if (prediction.owners.empty()) return {};
  const std::string place = place_text(prediction);
  Lines lines;
  add_wrapped(fmt::format("Tensors at their peak: {} ({} bytes){}", to_string(prediction.pool_peak),
                          prediction.pool_peak.count, place.empty() ? "" : ", " + place),
              0, 2, style, lines);
  const std::size_t most = style.owners.value_or(kOwners);
  for (std::string& row : owner_rows(prediction.owners, most, prediction.pool_peak, style)) {
    lines.push_back(std::move(row));
  }
  return lines;
}

// The allocator's model decides, not the peak: it gives cached segments back before it refuses a request.
std::string verdict(const predict::CudaAnswer& answer, Bytes capacity) {
  if (!answer.fits) {
    return fmt::format("DOES NOT FIT {}: {} asks for {} with {} allocated, {} reserved and {} free",
                       to_string(capacity), answer.op.empty() ? "a request" : answer.op, to_string(answer.requested),
                       to_string(answer.allocated), to_string(answer.reserved), to_string(answer.device_free));
  }
  std::string text = "fits " + to_string(capacity);
  if (answer.retries > 0) text += fmt::format(", if cached segments are given back ({} times)", answer.retries);
  return text;
}

Lines cuda_lines(const predict::Cuda& cuda, const TerminalStyle& style) {
  std::string head = fmt::format("On a CUDA card: {} ({} allocated, {} reserved)", to_string(cuda.process_peak),
                                 to_string(cuda.allocated_peak), to_string(cuda.reserved_peak));
  if (cuda.capacity && cuda.answer) head += "; " + verdict(*cuda.answer, *cuda.capacity);
  if (!cuda.calibrated) head += "; not calibrated: never compared with a real card";
  Lines lines;
  add_wrapped(head, 0, 3, style, lines);
  for (std::size_t i = 0; i < cuda.rows.size() && i < kCudaRows; ++i) {
    const predict::Row& row = cuda.rows[i];
    const std::string text = row.source.empty() ? row.name : fmt::format("{} ({})", row.name, row.source);
    lines.push_back(fmt::format("{:>11} {:>5}  {}", to_string(row.bytes), share(row.bytes, cuda.process_peak),
                                clip(clean(text, style.unicode), style.width - 19)));
  }
  if (cuda.rows.size() > kCudaRows) {
    lines.push_back(fmt::format("  ... and {} more rows (--json has all)", cuda.rows.size() - kCudaRows));
  }
  return lines;
}

std::string law_in_passing(Law law) { return law == Law::Exact ? "exact" : law == Law::Bound ? "a bound" : "no law"; }

// "784 x 784"
std::string square_text(const predict::LargestSquare& square) {
  const std::vector<std::int64_t> sides(square.sides.size(), square.found.value);
  return fmt::format("{}", fmt::join(sides, " x "));
}

Lines memory_lines(const Prediction& prediction, const TerminalStyle& style) {
  if (!prediction.memory) return {};
  const Bytes memory = *prediction.memory;
  std::string text = prediction.fits()
                         ? fmt::format("Fits {} without a plan", to_string(memory))
                         : fmt::format("DOES NOT FIT {} without a plan: {} more are needed", to_string(memory),
                                       to_string(prediction.process_peak - prediction.room()));
  if (prediction.largest_square) {
    const predict::LargestThatFits& found = prediction.largest_square->found;
    text += found.value == 0
                ? "; no square that was tried fits"
                : fmt::format("; the largest square that does: {} ({}, {})", square_text(*prediction.largest_square),
                              to_string(found.process_peak), law_in_passing(found.law));
  }
  for (const predict::LargestThatFits& one : prediction.largest) {
    if (one.value == 0) {
      text += fmt::format("; no {} that was tried fits", one.knob);
    } else {
      const std::string_view end = one.smallest ? "smallest" : "largest";
      const std::string found = one.word.empty() ? fmt::format("the {} {} that does: {}", end, one.knob, one.value)
                                                 : fmt::format("the first --{} that does: {}", one.knob, one.word);
      text += fmt::format("; {} ({}, {}{})", found, to_string(one.process_peak), law_in_passing(one.law),
                          one.needs.empty() ? "" : "; needs " + one.needs);
    }
  }
  Lines lines;
  add_wrapped(text, 0, 8, style, lines);  // each choice of a program has half a line
  return lines;
}

Lines plan_lines(const Prediction& prediction, const TerminalStyle& style) {
  if (!prediction.planned || !prediction.memory) return {};
  const predict::PlannedFit& plan = *prediction.planned;
  const std::string memory = to_string(*prediction.memory);
  std::string text;
  if (plan.fits) {
    text = fmt::format(
        "With a plan, ullage run fits it into {}, with the same bits: about {:+.0f} % time, {} recomputed, {} spilled",
        memory, plan.more_time * 100, plan.recomputed, plan.spilled);
    const Seconds step{prediction.step.count * (1 + plan.more_time)};
    if (step > Seconds{}) text += fmt::format("; a step then takes about {}", to_string(step));
  } else {
    text = fmt::format("No plan fits {}; the least that a plan was found for is {}", memory,
                       to_string(plan.least + prediction.others));
  }
  Lines lines;
  add_wrapped(text, 0, 3, style, lines);
  return lines;
}

Lines last_lines(const Prediction& prediction, const std::string& next, const TerminalStyle& style) {
  Lines lines;
  if (prediction.step > Seconds{}) {
    const char* how = prediction.measured ? "" : ", an estimate";
    lines.push_back(fmt::format("One step: about {}{}", to_string(prediction.step), how));
  }
  if (!prediction.phases_not_seen.empty()) {
    add_wrapped(fmt::format("Not seen, and not in these figures: {}", fmt::join(prediction.phases_not_seen, ", ")), 0,
                2, style, lines);
  }
  // A shipped program always has the pool; a person's own (behind "--") has it under ullage run alone.
  if (next.find(" -- ") != std::string::npos) {
    add_wrapped("Without ullage run it may hold more: malloc keeps blocks that were freed", 0, 2, style, lines);
  }
  // A command is never wrapped, so that it can be copied.
  if (!next.empty()) lines.push_back("next: " + clean(next, style.unicode));
  return lines;
}

}  // namespace

std::string sizes_text(const std::vector<Knob>& at) {
  std::string text;
  for (const Knob& knob : at) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", knob.name, knob.value);
  return text.empty() ? "the sizes it ran with" : text;
}

void write_terminal(const Prediction& prediction, const TerminalStyle& asked, const std::string& next,
                    std::ostream& out) {
  TerminalStyle style = asked;
  style.width = std::clamp(style.width, 40u, 120u);
  std::vector<Lines> sections = {headline(prediction, style), row_lines(prediction, style),
                                 owner_lines(prediction, style)};
  if (prediction.cuda) sections.push_back(cuda_lines(*prediction.cuda, style));
  sections.push_back(memory_lines(prediction, style));
  sections.push_back(plan_lines(prediction, style));
  sections.push_back(last_lines(prediction, next, style));
  bool first = true;
  for (const Lines& section : sections) {
    if (section.empty()) continue;
    if (!first) out << '\n';
    first = false;
    for (const std::string& line : section) out << line << '\n';
  }
}

}  // namespace ullage::report
