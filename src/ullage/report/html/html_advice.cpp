// SPDX-License-Identifier: Apache-2.0
// The page of an Advice: the curves of the remedies over each other, and all rows.
#include "ullage/base/sizes.h"
#include "ullage/report/advice_report.h"
#include "ullage/report/advice_words.h"
#include "ullage/report/command_text.h"
#include "ullage/report/html/html_page_text.h"
#include "ullage/report/html/html_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

namespace ullage::report {
namespace {

using advise::Curve;
using advise::Row;
using UnorderedJson = nlohmann::json;

constexpr std::size_t kMostCurves = 6;  // page/advice.css has a color for each, and one for the plain program

// The rows whose curves are drawn: the first that have one.
std::vector<const Row*> drawn_rows(const advise::Advice& advice) {
  std::vector<const Row*> drawn;
  for (const Row& row : advice.rows) {
    if (row.curve && drawn.size() < kMostCurves) drawn.push_back(&row);
  }
  return drawn;
}

// Each number less the one before it, which is short because neighbours are similar.
UnorderedJson differences(const std::vector<Bytes>& levels, Bytes beside) {
  UnorderedJson json = UnorderedJson::array();
  std::uint64_t last = 0;
  for (const Bytes level : levels) {
    const std::uint64_t now = level.count + beside.count;
    json.push_back(static_cast<std::int64_t>(now - last));
    last = now;
  }
  return json;
}

UnorderedJson curve_of(const Row& row) {
  UnorderedJson steps = UnorderedJson::array();
  for (const Curve::Step& step : row.curve->steps)
    steps.push_back({differences(step.tensors, row.curve->beside), differences(step.held, row.curve->beside)});
  return {{"name", row.name}, {"fits", row.fits.value_or(false)}, {"steps", std::move(steps)}};
}

std::string timelines(const advise::Advice& advice, const std::vector<const Row*>& drawn) {
  UnorderedJson curves = UnorderedJson::array();
  if (advice.plain.curve) curves.push_back(curve_of(advice.plain));
  for (const Row* row : drawn) curves.push_back(curve_of(*row));
  if (curves.empty()) return "";
  if (!advice.plain.curve) curves.insert(curves.begin(), nullptr);
  const UnorderedJson json = {{"memory", advice.memory.count}, {"parts", Curve::kParts}, {"curves", std::move(curves)}};
  return "<section class=\"timelines\"><h2>What each run held</h2><noscript><p>The timeline needs JavaScript.</p>"
         "</noscript><script type=\"application/json\" class=\"advice-timeline\">" +
         in_script(json.dump(-1, ' ', true, UnorderedJson::error_handler_t::replace)) + "</script></section>\n";
}

std::string row_of(const Row& row, std::size_t color, Bytes memory) {
  const std::string at = place_word(row);
  std::string text =
      fmt::format("{}<b>{}</b>", color > 0 ? fmt::format("<i class=\"dot k-{}\"></i>", color) : "", escaped(row.name));
  if (!at.empty()) text += " <span class=\"source\">" + escaped(at) + "</span>";
  if (!row.action.empty()) text += "<p class=\"action\">" + escaped(row.action) + "</p>";
  if (row.plainly) text += "<p class=\"reason\">" + escaped(plainly_words(row, memory)) + "</p>";
  if (!row.note.empty()) text += "<p class=\"reason\">" + escaped(row.note) + "</p>";
  return fmt::format(
      "<tr class=\"{}\" data-id=\"{}\"><td>{}</td><td class=\"number\"{}>{}</td><td class=\"number\">{}</td><td "
      "class=\"result\">{}</td><td class=\"remedy\">{}</td></tr>",
      row.fits.value_or(false) ? "fits" : "too-large", escaped(row.id), fits_word(row),
      row.peak ? fmt::format(" data-bytes=\"{}\"", row.peak->count) : "", peak_word(row), time_word(row),
      result_word(row), text);
}

std::string table(const advise::Advice& advice, const std::vector<const Row*>& drawn) {
  if (advice.rows.empty()) return "<section><p>No remedy applies to this program.</p></section>\n";
  std::string rows;
  for (const Row& row : advice.rows) {
    const auto found = std::ranges::find(drawn, &row);
    rows += row_of(row, found == drawn.end() ? 0 : static_cast<std::size_t>(found - drawn.begin()) + 1, advice.memory);
  }
  return "<section class=\"advice\"><h2>Remedies</h2><table><thead><tr><th>fits</th><th class=\"number\">peak</th><th "
         "class=\"number\">time</th><th>result</th><th>remedy</th></tr></thead><tbody>" +
         rows + "</tbody></table></section>\n";
}

std::string last(const advise::Advice& advice) {
  std::string notes;
  const auto add = [&](const std::string& text) { notes += "<li>" + escaped(text) + "</li>"; };
  if (std::ranges::any_of(advice.rows, [](const Row& row) { return row.basis == advise::Basis::Computed; }))
    add("~: computed from the recording, at best; not tried");
  if (!advice.time_basis.empty()) add("time: " + advice.time_basis);
  for (const std::string& note : advice.notes) add(note);
  add(fmt::format("{} runs in {}", advice.runs, to_string(advice.wall)));
  return "<section class=\"last\"><ul class=\"notes\">" + notes + "</ul></section>\n";
}

}  // namespace

void write_html(const advise::Advice& advice, std::ostream& out) {
  const std::string title = escaped(headline(advice));
  const std::vector<const Row*> drawn = drawn_rows(advice);
  std::string command;
  for (const std::string& word : advice.command) command += (command.empty() ? "" : " ") + quoted(word);
  out << kPageHead << "<title>" << title << "</title>\n<style>\n"
      << kPageStyle << kAdviceStyle << "</style>\n</head>\n<body>\n<article>\n<header><h1>" << title << "</h1>";
  if (advice.plain.plainly) out << "<p>" << escaped(plainly_words(advice.plain, advice.memory)) << "</p>";
  if (!advice.refused.empty()) out << "<p>" << escaped(advice.refused) << "</p>";
  out << "<p class=\"source\">" << escaped(command) << "</p></header>\n"
      << timelines(advice, drawn) << table(advice, drawn) << last(advice)
      << "</article>\n<footer>made by <code>ullage advise</code>; this page needs no network</footer>\n"
         "<script nonce=\"ullage\">\n"
      << kAdviceScript << "</script>\n</body>\n</html>\n";
}

}  // namespace ullage::report
