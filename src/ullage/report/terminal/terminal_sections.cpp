// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/terminal/terminal_sections.h"

#include "ullage/base/sizes.h"
#include "ullage/report/terminal/terminal_bar.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ullage::report {
namespace {

std::string title(const std::string& text, const TerminalStyle& style) { return bold(clip(text, style.width), style); }

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// Adds `lead` and the text; further lines are indented to the text. Adds at most `most` lines and cuts the last one.
void add_wrapped(const std::string& lead, const std::string& text, std::size_t most, const TerminalStyle& style,
                 Lines& lines) {
  const std::size_t indent = columns(lead);
  const std::size_t width = style.width - std::min<std::size_t>(style.width / 2, indent);
  const std::string cleaned = trimmed(clean(text, style.unicode));
  const Lines wrapped = wrap(cleaned, width);
  for (std::size_t i = 0; i < wrapped.size() && i < most; ++i) {
    std::string line = wrapped[i];
    if (i + 1 == most && wrapped.size() > most) line = clip(line.append(" ...."), width);
    lines.push_back((i == 0 ? lead : std::string(indent, ' ')) + line);
  }
}

std::string more_of(std::size_t count, const char* one, const char* many, const TerminalStyle& style) {
  return clip(fmt::format("  ... and {} more {} (--json has all)", count, count == 1 ? one : many), style.width);
}

std::string percent(double confidence) { return fmt::format("{:.0f} %", 100 * confidence); }

std::string saving(const diagnose::Remedy& remedy) {
  if (!remedy.saves) return name(remedy.basis);
  return fmt::format("saves {} ({})", to_string(*remedy.saves), name(remedy.basis));
}

}  // namespace

const char* in_words(double confidence) {
  if (confidence >= 0.9) return "almost certain";
  if (confidence >= 0.65) return "likely";
  if (confidence >= 0.4) return "as likely as not";
  if (confidence >= 0.15) return "possible";
  return "unlikely";
}

const char* name(diagnose::Basis basis) {
  switch (basis) {
    case diagnose::Basis::Simulated:
      return "simulated";
    case diagnose::Basis::Computed:
      return "computed";
    case diagnose::Basis::Known:
      break;
  }
  return "known practice";
}

std::string devices_in_words(const std::vector<diagnose::DeviceShare>& devices) {
  std::string words;
  for (const diagnose::DeviceShare& share : devices) {
    words +=
        fmt::format("{}GPU {} held at most {}", words.empty() ? "" : ", ", share.device, to_string(share.live_peak));
    if (share.refused) words += fmt::format(" and refused {}", to_string(*share.refused));
  }
  return words;
}

Lines headline_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style) {
  Lines lines;
  for (const std::string& line : wrap(trimmed(clean(diagnosis.headline, style.unicode)), style.width)) {
    lines.push_back(bold(line, style));
  }
  const diagnose::Source& source = diagnosis.source;
  const std::string kind = source.kind == "message" ? "" : source.kind + " ";
  std::string rest;
  if (source.line > 0) rest += fmt::format(", line {}", source.line);
  if (source.repeated > 1) rest += fmt::format(", found {} times", source.repeated);
  // A version such as "torch 2.5 to 2.8" shows already that the message is PyTorch's.
  if (diagnosis.tool && (diagnosis.tool->id != "torch" || source.torch.empty())) rest += ", by " + diagnosis.tool->name;
  if (!source.torch.empty()) rest += ", torch " + source.torch;
  rest = clean(rest, style.unicode);
  const std::string file = clean(source.file == "-" ? "standard input" : source.file, style.unicode);
  const std::size_t others = std::min<std::size_t>(style.width, kind.size() + columns(rest));
  const std::string shown = clip(file, std::max<std::size_t>(style.width / 2, style.width - others), true);
  add_wrapped("", kind + shown + rest, 2, style, lines);
  if (!diagnosis.asked_by.empty()) add_wrapped("asked for by ", diagnosis.asked_by, 2, style, lines);
  if (!diagnosis.devices.empty()) add_wrapped("", devices_in_words(diagnosis.devices), 2, style, lines);
  return lines;
}

Lines owner_lines(const diagnose::Peak& peak, const Measure& measure, const TerminalStyle& style) {
  std::string heading = "Live at the peak: " + to_string(peak.bytes);
  if (peak.event) heading = fmt::format("Live at event {}: {}", peak.event->value, to_string(peak.bytes));
  Lines lines = {title(heading, style)};
  for (std::string& row : owner_rows(peak.owners, measure.owners, peak.bytes, style)) lines.push_back(std::move(row));
  return lines;
}

Lines owner_rows(std::span<const trace::Owner> owners, std::size_t most, Bytes all, const TerminalStyle& style) {
  const std::span<const trace::Owner> shown = owners.first(std::min(most, owners.size()));
  std::size_t category = 17;  // columns
  for (const trace::Owner& owner : shown) category = std::max(category, trace::name(owner.category).size() + 1);
  if (style.width < 64) category = 0;  // narrow terminals get no category
  Lines lines;
  Bytes rest = all;
  for (const trace::Owner& owner : shown) {
    rest = saturating_sub(rest, owner.bytes);
    // Keeps the end of a path, and the beginning of "resnet.py:132 forward (train.py:46 main)".
    const std::string text = owner.name.empty() ? "no stack was recorded" : clean(owner.name, style.unicode);
    lines.push_back(fmt::format("{:>11} {:>5}  {}{}", to_string(owner.bytes), share(owner.bytes, all),
                                category > 0 ? padded(trace::name(owner.category), category) : "",
                                clip(text, style.width - 19 - category, text.find(" (") == std::string::npos)));
  }
  if (owners.size() > shown.size()) {
    lines.push_back(
        fmt::format("{:>11} {:>5}  {} others", to_string(rest), share(rest, all), owners.size() - shown.size()));
  }
  return lines;
}

Lines cause_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style) {
  if (diagnosis.causes.empty()) return {};
  Lines lines = {title("Why", style)};
  const std::size_t shown = std::min(measure.causes, diagnosis.causes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const diagnose::Cause& cause = diagnosis.causes[i];
    const std::string head = fmt::format("  {} ({}, {})", cause.title.empty() ? cause.id : cause.title,
                                         in_words(cause.confidence), percent(cause.confidence));
    add_wrapped("  ", head.substr(2), 2, style, lines);
    std::size_t left = measure.evidence;
    for (const std::string& evidence : cause.evidence) {
      const std::size_t before = lines.size();
      if (left > 0) add_wrapped("    - ", evidence, left, style, lines);
      left -= lines.size() - before;
    }
  }
  if (const std::size_t rest = diagnosis.causes.size() - shown; rest > 0)
    lines.push_back(more_of(rest, "cause", "causes", style));
  return lines;
}

Lines remedy_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style) {
  if (diagnosis.remedies.empty()) return {};
  Lines lines = {title("What to do", style)};
  const std::size_t shown = std::min(measure.remedies, diagnosis.remedies.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const diagnose::Remedy& remedy = diagnosis.remedies[i];
    add_wrapped(fmt::format("{:>3}. ", i + 1), remedy.action, 3, style, lines);
    std::string below = saving(remedy);
    if (measure.why > 0 && !remedy.why.empty()) below += "; " + remedy.why;
    if (measure.why > 0 || remedy.saves)
      add_wrapped("     ", below, std::max<std::size_t>(measure.why, 1), style, lines);
  }
  if (const std::size_t rest = diagnosis.remedies.size() - shown; rest > 0) {
    lines.push_back(more_of(rest, "remedy", "remedies", style));
  }
  return lines;
}

Lines note_lines(const diagnose::Diagnosis& diagnosis, const Measure& measure, const TerminalStyle& style) {
  Lines lines;
  const std::size_t shown = std::min(measure.notes, diagnosis.notes.size());
  for (std::size_t i = 0; i < shown; ++i) add_wrapped("note: ", diagnosis.notes[i], 2, style, lines);
  if (const std::size_t rest = diagnosis.notes.size() - shown; rest > 0)
    lines.push_back(more_of(rest, "note", "notes", style));
  return lines;
}

Lines last_lines(const diagnose::Diagnosis& diagnosis, const TerminalStyle& style) {
  Lines lines;
  if (!diagnosis.to_know_more.empty()) add_wrapped("to be sure: ", diagnosis.to_know_more, 6, style, lines);
  // A command is never wrapped, so that it can be copied.
  if (!diagnosis.next.empty()) lines.push_back("next: " + clean(diagnosis.next, style.unicode));
  return lines;
}

}  // namespace ullage::report
