// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_cards.h"

#include "ullage/base/sizes.h"
#include "ullage/predict/event_text.h"
#include "ullage/report/html/html_text.h"
#include "ullage/report/terminal/terminal_bar.h"
#include "ullage/report/terminal/terminal_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ullage::report {
namespace {

using Kind = diagnose::Bar::Part::Kind;

constexpr std::size_t kOwnerRows = 20;  // rows of owners that are open at first
constexpr std::size_t kLayers = 40;     // rows of what is saved

// "optimizer state" becomes the class "c-optimizer-state" of page.css. A name that page.css does not know has the color
// of the rest.
std::string category_class(std::string_view name) {
  std::string out = "c-";
  for (const unsigned char c : name) out += std::isalpha(c) ? static_cast<char>(std::tolower(c)) : '-';
  return out;
}

std::string part_class(const diagnose::Bar::Part& part) {
  switch (part.kind) {
    case Kind::Live:
      return "live " + category_class(part.name);
    case Kind::Usable:
      return "usable";
    case Kind::Stuck:
      return "stuck";
    case Kind::NotPyTorch:
      return "outside";
    case Kind::Free:
      break;
  }
  return "free";
}

double part_of(Bytes part, Bytes whole) {
  return whole == Bytes{} ? 0 : static_cast<double>(part.count) / static_cast<double>(whole.count);
}

std::string list_of(const std::vector<std::string>& texts, const char* name) {
  if (texts.empty()) return "";
  std::string out = fmt::format("<ul class=\"{}\">", name);
  for (const std::string& text : texts) out += "<li>" + escaped(text) + "</li>";
  return out + "</ul>";
}

std::string owner_row(const trace::Owner& owner, Bytes all) {
  return fmt::format(
      "<tr><td class=\"number\" data-bytes=\"{}\">{}</td><td class=\"number\">{}</td><td><i class=\"dot "
      "{}\"></i><span class=\"wide\">{} </span></td>"
      "<td class=\"code\">{}</td><td class=\"number wide\">{}</td></tr>",
      owner.bytes.count, to_string(owner.bytes), escaped(share(owner.bytes, all)),
      category_class(trace::name(owner.category)), escaped(trace::name(owner.category)), escaped(owner.name),
      owner.storages);
}

}  // namespace

std::string html_headline(const diagnose::Diagnosis& diagnosis) {
  const diagnose::Source& source = diagnosis.source;
  std::string text = source.kind + " " + (source.file == "-" ? "from standard input" : source.file);
  if (source.line > 0) text += fmt::format(", line {}", source.line);
  if (source.repeated > 1) text += fmt::format(", found {} times", source.repeated);
  if (diagnosis.tool && (diagnosis.tool->id != "torch" || source.torch.empty())) text += ", by " + diagnosis.tool->name;
  if (!source.torch.empty()) text += ", torch " + source.torch;
  if (!source.knobs.empty()) text += ", " + predict::knobs_text(source.knobs);
  std::string out = "<h1>" + escaped(diagnosis.headline) + "</h1><p class=\"source\">" + escaped(text) + "</p>";
  if (!diagnosis.asked_by.empty()) out += "<p class=\"asked-by\">asked for by " + escaped(diagnosis.asked_by) + "</p>";
  if (!diagnosis.devices.empty()) {
    out += "<p class=\"devices\">" + escaped(devices_in_words(diagnosis.devices)) + "</p>";
  }
  return out;
}

std::string html_bar(const diagnose::Bar& bar) {
  std::string parts, legend;
  for (const diagnose::Bar::Part& part : bar.parts) {
    if (part.bytes == Bytes{}) continue;
    const std::string look = part_class(part), name = escaped(part.name), size = to_string(part.bytes);
    const std::string percent = escaped(share(part.bytes, bar.total));
    parts += fmt::format("<span class=\"{}\" style=\"flex-grow:{:.5f}\" title=\"{}: {}\"></span>", look,
                         part_of(part.bytes, bar.total), name, size);
    legend +=
        fmt::format("<li><i class=\"dot {}\"></i><span>{}</span><b data-bytes=\"{}\">{}</b><small>{}</small></li>",
                    look, name, part.bytes.count, size, percent);
  }
  return fmt::format(
      "<section class=\"device\" data-bytes=\"{}\"><h2>{}</h2><div class=\"bar\" role=\"img\" aria-label=\"parts of "
      "{}, "
      "listed below\">{}</div><ul class=\"legend\">{}</ul></section>",
      bar.total.count, escaped(bar.of), escaped(bar.of), parts, legend);
}

std::string html_causes(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.causes.empty()) return "";
  std::string cards;
  for (const diagnose::Cause& cause : diagnosis.causes) {
    const double percent = 100 * std::clamp(cause.confidence, 0.0, 1.0);
    cards += fmt::format(
        "<li class=\"card\" data-id=\"{}\"><h3>{}</h3><p class=\"confidence\"><meter min=\"0\" max=\"100\" "
        "value=\"{:.0f}\"></meter> {}, {:.0f} %</p>{}</li>",
        escaped(cause.id), escaped(cause.title.empty() ? cause.id : cause.title), percent, in_words(cause.confidence),
        percent, list_of(cause.evidence, "evidence"));
  }
  return "<section class=\"causes\"><h2>Why</h2><ol class=\"cards\">" + cards + "</ol></section>";
}

std::string html_remedies(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.remedies.empty()) return "";
  std::string cards;
  for (const diagnose::Remedy& remedy : diagnosis.remedies) {
    std::string effect = remedy.saves ? "saves " + to_string(*remedy.saves) + " " : "";
    effect += fmt::format("<small class=\"basis\">{}</small>", name(remedy.basis));
    cards += fmt::format("<li class=\"card\" data-id=\"{}\"><p class=\"action\">{}</p><p class=\"saves\">{}</p>",
                         escaped(remedy.id), escaped(remedy.action), effect);
    if (!remedy.why.empty()) cards += "<p class=\"reason\">" + escaped(remedy.why) + "</p>";
    cards += "</li>";
  }
  return "<section class=\"remedies\"><h2>What to do</h2><ol class=\"cards\">" + cards + "</ol></section>";
}

std::string html_owners(const diagnose::Peak& peak) {
  constexpr std::string_view head =
      "<thead><tr><th class=\"number\">bytes</th><th class=\"number\">share</th><th><span "
      "class=\"wide\">category</span></th><th>owner</th><th "
      "class=\"number wide\">tensors</th></tr></thead>";
  std::string title = "Live at the peak";
  if (peak.event) title = fmt::format("Live at event {}", peak.event->value);
  std::string first, rest;
  Bytes rest_bytes;
  for (std::size_t i = 0; i < peak.owners.size(); ++i) {
    (i < kOwnerRows ? first : rest) += owner_row(peak.owners[i], peak.bytes);
    if (i >= kOwnerRows) rest_bytes += peak.owners[i].bytes;
  }
  std::string out = fmt::format(
      "<section class=\"peak\" data-bytes=\"{}\"><h2>{}: {}</h2><div class=\"scroll\"><table "
      "class=\"owners\">{}<tbody>{}"
      "</tbody></table></div>",
      peak.bytes.count, title, to_string(peak.bytes), head, first);
  if (!rest.empty()) {
    out += fmt::format(
        "<details><summary>{} more: {}</summary><div class=\"scroll\"><table "
        "class=\"owners\">{}<tbody>{}</tbody></table>"
        "</div></details>",
        peak.owners.size() - kOwnerRows, to_string(rest_bytes), head, rest);
  }
  return out + "</section>";
}

std::string html_saved(const diagnose::Saved& saved) {
  if (saved.by.empty()) return "";
  std::string rows;
  Bytes shown;
  std::size_t count = 0;
  const auto row = [&](Bytes bytes, std::string_view name, const std::string& tensors) {
    rows += fmt::format(
        "<tr><td class=\"number\" data-bytes=\"{}\">{}</td><td class=\"number\">{}</td><td class=\"code\"><i "
        "class=\"gauge c-activations\" style=\"width:{:.2f}%\"></i>{}</td><td class=\"number wide\">{}</td></tr>",
        bytes.count, to_string(bytes), escaped(share(bytes, saved.bytes)), 100 * part_of(bytes, saved.by.front().bytes),
        escaped(name), tensors);
  };
  for (const diagnose::SavedBy& one : saved.by) {
    if (count++ == kLayers) break;
    row(one.bytes, one.name + diagnose::line_in_words(one.line), std::to_string(one.storages));
    shown += one.bytes;
  }
  if (shown < saved.bytes) row(saved.bytes - shown, fmt::format("{} others", saved.by.size() - kLayers), "");
  return fmt::format(
      "<section class=\"saved\" data-bytes=\"{}\"><h2>Saved for the backward pass at that moment: {}</h2><div "
      "class=\"scroll\"><table><thead><tr><th class=\"number\">bytes</th><th class=\"number\">share</th>"
      "<th>layer or op</th><th class=\"number wide\">tensors</th></tr></thead><tbody>{}</tbody></table></div>"
      "</section>\n",
      saved.bytes.count, to_string(saved.bytes), rows);
}

std::string html_last(const diagnose::Diagnosis& diagnosis) {
  std::string out = list_of(diagnosis.notes, "notes");
  if (!diagnosis.to_know_more.empty()) out += "<h3>To be sure</h3><p>" + escaped(diagnosis.to_know_more) + "</p>";
  // The command that makes such a page is of no use on it.
  if (!diagnosis.next.empty() && !diagnosis.next.ends_with(" --html page.html"))
    out += "<h3>Next</h3><p><code>" + escaped(diagnosis.next) + "</code></p>";
  return out.empty() ? out : "<section class=\"last\">" + out + "</section>";
}

}  // namespace ullage::report
