// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/html/html_cards.h"
#include "ullage/report/html/html_page_text.h"
#include "ullage/report/html/html_text.h"
#include "ullage/report/html/html_timeline.h"
#include "ullage/report/input_history.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

namespace ullage::report {
namespace {

using diagnose::Diagnosis;

void write_timeline(const Diagnosis& diagnosis, const InputHistory& history, std::ostream& out) {
  const trace::Levels levels = trace::levels(history.trace());
  const Timeline timeline = make_timeline(history, levels, diagnosis.peak ? diagnosis.peak->event : std::nullopt);
  if (timeline.storages.empty() && timeline.ranges.empty() && timeline.events == 0) return;
  out << "<section class=\"history\"><noscript><p>The timeline needs JavaScript.</p></noscript>"
         "<script type=\"application/json\" class=\"timeline\">"
      << to_json(timeline, *history.stacks) << "</script></section>\n";
}

void write_one(const Diagnosis& diagnosis, const std::optional<InputHistory>& history, std::ostream& out) {
  out << "<article>\n<header>" << html_headline(diagnosis) << "</header>\n";
  if (diagnosis.bar) out << html_bar(*diagnosis.bar) << '\n';
  out << "<div class=\"answer\">" << html_causes(diagnosis) << html_remedies(diagnosis) << "</div>\n";
  if (history) write_timeline(diagnosis, *history, out);
  if (diagnosis.peak) out << html_owners(*diagnosis.peak) << '\n';
  if (diagnosis.saved) out << html_saved(*diagnosis.saved);
  out << html_last(diagnosis) << "\n</article>\n";
}

}  // namespace

void write_html(const std::vector<Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out) {
  ULLAGE_CHECK(!diagnoses.empty(), "a report of no diagnosis");
  out << kPageHead << "<title>" << escaped(diagnoses.front().headline) << "</title>\n<style>\n"
      << kPageStyle << "</style>\n</head>\n<body>\n";
  if (diagnoses.size() > 1) {
    out << "<nav><p>" << diagnoses.size() << " in this file:</p><ol>";
    for (std::size_t i = 0; i < diagnoses.size(); ++i) {
      out << fmt::format("<li><a href=\"#d{}\">{}</a></li>", i, escaped(diagnoses[i].headline));
    }
    out << "</ol></nav>\n";
  }
  for (std::size_t i = 0; i < diagnoses.size(); ++i) {
    out << fmt::format("<div id=\"d{}\">\n", i);
    write_one(diagnoses[i], history_of(input, diagnoses[i], i, diagnoses.size()), out);
    out << "</div>\n";
  }
  out << "<footer>made by <code>ullage explain</code>; this page needs no network</footer>\n<script nonce=\"ullage\">\n"
      << kPageScript << "</script>\n</body>\n</html>\n";
}

}  // namespace ullage::report
