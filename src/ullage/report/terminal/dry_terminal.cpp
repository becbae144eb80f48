// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/dry_report.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <ranges>

namespace ullage::report {
namespace {

constexpr std::size_t kMostGrowths = 3;  // places to name

std::string text_of(const DryReport::Place& place) {
  if (place.file.empty()) return "";
  const std::string in = place.function.empty() || place.function == "<module>" ? "" : " in " + place.function;
  return fmt::format(" at {}:{}{}", clean(place.file, true), place.line, clean(place.function.empty() ? "" : in, true));
}

std::string card_text(const DryReport& report) {
  std::string text = report.card_name + " (" + to_string(report.card_memory) + ")";
  if (report.cards.size() > 1) text = fmt::format("{} x ", report.cards.size()) + text;
  return text;
}

std::string verdict(const DryReport& report) {
  if (!report.used_the_card()) return "the program took no memory of the card";
  const auto most = std::max_element(report.cards.begin(), report.cards.end(),
                                     [](const auto& a, const auto& b) { return a.taken < b.taken; });
  const std::string on = card_text(report);
  if (report.ran_out()) {
    std::string text = fmt::format("DOES NOT FIT {}: {} were taken", on, to_string(most->taken));
    if (!report.refused.empty()) {
      const DryReport::Refused& last = report.refused.back();
      text += fmt::format(" when {} more were asked for{}", to_string(last.request), text_of(last.place));
    }
    return text;
  }
  // A program that failed, or was ended, might have needed more later.
  const char* fits = report.exit_code != 0   ? "not known whether it fits (the program failed)"
                     : report.is_cut_short() ? "not known whether it fits (the time was over before a step ended)"
                                             : "fits";
  return fmt::format("{}: {} of {}", fits, to_string(most->taken), on);
}

std::string end_text(const DryReport& report) {
  std::string steps = report.steps_of.empty() ? "no optimizer's step was seen" : "";
  for (const DryReport::Steps& one : report.steps_of) {
    steps += fmt::format("{}{} step{} of {} optimizer{}", steps.empty() ? "" : " and ", one.steps,
                         one.steps == 1 ? "" : "s", one.optimizers, one.optimizers == 1 ? "" : "s");
  }
  switch (report.ended_by) {
    case DryReport::EndedBy::Steps:
      return steps + ", then the dry run stopped: what follows (evaluation, sampling, saving) was not run";
    case DryReport::EndedBy::Seconds:
      return steps + ", then the dry run stopped, because its time was over: what follows was not run";
    case DryReport::EndedBy::Program:
      break;
  }
  if (report.exit_code == 0) return steps + ", to the program's own end";
  return steps + fmt::format(", then the program ended with exit code {}", report.exit_code);
}

std::string largest_text(const DryReport::Largest& largest) {
  if (!largest.fits) return fmt::format("no {} fits", largest.of);
  if (!largest.too_large) return fmt::format("{} {} fits; larger ones were not tried", largest.of, *largest.fits);
  if (*largest.too_large == *largest.fits + 1) {
    return fmt::format("the largest {} that fits: {}", largest.of, *largest.fits);
  }
  return fmt::format("{} {} fits, {} does not; between them the program fails for another reason", largest.of,
                     *largest.fits, *largest.too_large);
}

// Describes an error. An error that is no lack of memory may come from a value that a kernel would have written.
std::string error_text(const DryReport& report) {
  const DryReport::Failure& error = *report.error;
  std::string text = error.type + text_of(error.place) + ": " + clip(clean(error.text, true), 200);
  if (report.ran_out() || report.reads == 0) return text;
  return text +
         "; kernels do not run and reads from the card return zeros, so a check of a computed value may fail "
         "only here: leave that check out to see what comes after it";
}

}  // namespace

std::vector<std::string> host_filled_lines(const DryReport::HostFilled& filled) {
  const std::string pinned =
      filled.pinned > Bytes{} ? "; " + to_string(filled.pinned) + " were locked for the card" : "";
  std::vector<std::string> lines = {
      fmt::format(
          "ended before the kernel kills something: the program filled this machine's memory, not the card's: {} "
          "of {} were left",
          to_string(filled.left), to_string(filled.most)),
      fmt::format("process {} ({}) held {}{}{}; its {} of files' pages do not count, because the kernel can drop them",
                  filled.process, clip(clean(filled.command, true), 80), to_string(filled.held),
                  filled.place.file.empty() ? "" : ", and was" + text_of(filled.place), pinned,
                  to_string(filled.files))};
  std::vector<DryReport::Growth> growth = filled.growth;
  std::ranges::sort(growth, std::ranges::greater{}, &DryReport::Growth::bytes);
  std::string text;
  for (const DryReport::Growth& one : growth | std::views::take(kMostGrowths)) {
    text += (text.empty() ? "it grew by " : ", by ") + to_string(one.bytes) + text_of(one.place);
  }
  if (!text.empty()) lines.push_back(text);
  lines.emplace_back(
      "what to do: make the model on the card (device=\"cuda\", with torch.device(\"cuda\")), or on \"meta\" first; "
      "load with map_location=\"cuda\" or mmap=True, from_pretrained with device_map=\"cuda\" and safetensors files");
  return lines;
}

std::size_t DryReport::used_cards() const {
  return static_cast<std::size_t>(
      std::count_if(cards.begin(), cards.end(), [](const Card& card) { return card.taken > Bytes{}; }));
}

std::uint64_t DryReport::steps() const {
  std::uint64_t sum = 0;
  for (const Steps& one : steps_of) sum += one.steps;
  return sum;
}

Bytes DryReport::most_taken() const {
  Bytes most;
  for (const Card& card : cards) most = std::max(most, card.taken);
  return most;
}

bool DryReport::ran_out() const {
  return exit_code != 0 && (error ? error->type.find("OutOfMemory") != std::string::npos : !refused.empty());
}

void write_terminal(const DryReport& report, const std::string& prefix, std::ostream& out) {
  const auto line = [&](const std::string& text) { out << prefix << text << '\n'; };
  line(verdict(report));
  for (std::size_t i = 0; i < report.cards.size(); ++i) {
    const DryReport::Card& card = report.cards[i];
    if (card.taken == Bytes{}) continue;
    const std::string which = report.cards.size() > 1 ? fmt::format("card {}: ", i) : "";
    const std::string torchs =
        card.allocated > Bytes{}
            ? fmt::format("{} in tensors at the peak, {} cached or in gaps between them", to_string(card.allocated),
                          to_string(saturating_sub(card.used, card.allocated)))
            : to_string(card.used) + " taken";
    line(fmt::format("  {}{}, {} context and libraries ({})", which, torchs, to_string(card.context),
                     report.only_size_known ? "as on an A100" : "an estimate for this card"));
  }
  line(fmt::format("  {}; the dry run took {} and {} of this machine's memory", end_text(report),
                   to_string(report.wall), to_string(report.host_peak)));
  if (report.host_filled) {
    for (const std::string& text : host_filled_lines(*report.host_filled)) line("  " + text);
  } else if (report.host_ran_out) {
    line(fmt::format(
        "  killed: the program filled this machine's memory ({}), not the card's. What it builds or loads on "
        "the host takes memory here; what is made on the card (device=\"cuda\", map_location=\"cuda\") "
        "takes none",
        to_string(report.host_total)));
  }
  if (report.error) line("  " + error_text(report));
  if (!report.refused.empty() && !report.ran_out()) {
    line(fmt::format("  {} request{} failed, the first one for {}{}; the program went on", report.refused.size(),
                     report.refused.size() == 1 ? "" : "s", to_string(report.refused.front().request),
                     text_of(report.refused.front().place)));
  }
  if (report.pinned_peak > Bytes{})
    line("  " + to_string(report.pinned_peak) + " of host memory were locked for the card");
  if (report.reads > 0) {
    line(
        fmt::format("  not known: {} read{} ({}) from the card returned zeros; sizes that depend on them may be larger",
                    report.reads, report.reads == 1 ? "" : "s", to_string(report.read_bytes)));
  }
  for (const DryReport::Bound& bound : report.bounds) {
    line(fmt::format(
        "  a {}: the size of {}'s result{} depends on values that a dry run does not have; assumed: {} ({} call{})",
        bound.is_the_most() ? "bound" : "guess", clean(bound.function, true), text_of(bound.place), bound.how,
        bound.calls, bound.calls == 1 ? "" : "s"));
  }
  for (const std::string& note : report.notes) line("  not known: " + note);
  if (!report.unknown_functions.empty()) {
    std::string names;
    for (const std::string& name : report.unknown_functions) names += (names.empty() ? "" : ", ") + clean(name, false);
    line("  functions that the dry card does not have were called, and did nothing: " + names);
  }
  if (report.largest) line("  " + largest_text(*report.largest));
}

}  // namespace ullage::report
