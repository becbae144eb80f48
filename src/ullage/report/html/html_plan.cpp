// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/command_text.h"
#include "ullage/report/html/html_cards.h"
#include "ullage/report/html/html_page_text.h"
#include "ullage/report/html/html_plan_curve.h"
#include "ullage/report/html/html_plan_timeline.h"
#include "ullage/report/html/html_text.h"
#include "ullage/report/plan_report.h"
#include "ullage/report/plan_words.h"

#include <fmt/format.h>

#include <ostream>

namespace ullage::report {
namespace {

constexpr std::size_t kSiteRows = 20;  // rows of sites that are open at first

std::string headline(const PlanReport& report) {
  return report.planned ? plan_headline(report) : "Budget against time: " + report.file;
}

std::string source_line(const PlanReport& report) {
  std::string text = "trace " + report.file;
  text += fmt::format(", a step of {} ops and {}", report.step.ops.size(), to_string(report.step.seconds));
  if (report.planned && !report.planned->torch.empty()) text += ", torch " + report.planned->torch;
  if (report.planned && !report.planned->command.empty()) {
    std::string command;
    for (const std::string& word : report.planned->command) command += (command.empty() ? "" : " ") + quoted(word);
    text += ", of: " + command;
  }
  return "<p class=\"source\">" + escaped(text) + "</p>";
}

std::string timeline(const PlanReport& report) {
  return "<section class=\"timelines\"><h2>Bytes of tensors that are present, op by op</h2><noscript><p>The timeline "
         "needs JavaScript.</p></noscript><script type=\"application/json\" class=\"plan-timeline\">" +
         plan_timeline_json(report) + "</script></section>\n";
}

std::string levers(const plan::Plan& plan) {
  if (plan.levers.empty()) return "";
  std::string rows;
  for (const LeverTotal& total : lever_totals(plan)) {
    rows += fmt::format(
        "<tr><td class=\"name\">{}</td><td class=\"number\">{}</td><td class=\"number\" data-bytes=\"{}\">{}</td><td "
        "class=\"number\">{}</td><td class=\"number\">{}</td><td></td></tr>",
        escaped(total.lever), total.sites, total.bytes.count, to_string(total.bytes), to_string(total.seconds),
        escaped(percent_text(total.seconds, plan.step)));
  }
  return "<section class=\"levers\"><h2>What is done in each step</h2><div class=\"scroll\"><table><thead><tr><th>lever"
         "</th><th class=\"number\">sites</th><th class=\"number\">bytes</th><th class=\"number\">time</th><th "
         "class=\"number\">of the step</th><th></th></tr></thead><tbody>" +
         rows + "</tbody></table></div></section>\n";
}

std::string sites(const plan::Plan& plan) {
  if (plan.levers.empty()) return "";
  constexpr std::string_view head =
      "<thead><tr><th class=\"number\">bytes</th><th "
      "class=\"number\">time</th><th>lever</th><th>site</th></tr></thead>";
  std::string first, rest;
  for (std::size_t i = 0; i < plan.levers.size(); ++i) {
    const plan::LeverUse& use = plan.levers[i];
    (i < kSiteRows ? first : rest) += fmt::format(
        "<tr><td class=\"number\" data-bytes=\"{}\">{}</td><td class=\"number\">{}</td><td class=\"name\">{}</td><td "
        "class=\"code\">{}</td></tr>",
        use.bytes.count, to_string(use.bytes), to_string(use.seconds), escaped(use.lever), escaped(use.site));
  }
  std::string out = fmt::format(
      "<section class=\"sites\"><h2>Where</h2><div class=\"scroll\"><table>{}<tbody>{}</tbody></table></div>", head,
      first);
  if (!rest.empty()) {
    out += fmt::format(
        "<details><summary>{} more</summary><div class=\"scroll\"><table>{}<tbody>{}</tbody></table></div>"
        "</details>",
        plan.levers.size() - kSiteRows, head, rest);
  }
  return out + "</section>\n";
}

std::string curve(const PlanReport& report) {
  if (report.curve.empty()) return "";
  return "<section class=\"curve-chart\"><h2>Budget against time</h2>" + plan_curve_svg(report) +
         "<p class=\"hint\">Solid: the plans that were found, each the best up to the next. Dashed: no plan with these "
         "levers costs less. Shaded: no plan.</p><details><summary>as a table</summary><div class=\"scroll\">" +
         plan_curve_table(report) + "</div></details></section>\n";
}

std::string last(const PlanReport& report) {
  std::string out;
  for (const std::string& text : {peak_sentence(report), least_sentence(report)}) {
    if (!text.empty()) out += "<li>" + escaped(text) + "</li>";
  }
  return out.empty() ? "" : "<section class=\"last\"><ul class=\"notes\">" + out + "</ul></section>\n";
}

}  // namespace

void write_html(const PlanReport& report, std::ostream& out) {
  const std::string title = escaped(headline(report));
  out << kPageHead << "<title>" << title << "</title>\n<style>\n"
      << kPageStyle << kPlanStyle << "</style>\n</head>\n<body>\n<article>\n<header><h1>" << title << "</h1>"
      << source_line(report) << "</header>\n";
  if (report.planned) out << html_bar(memory_bar(report)) << '\n';
  out << timeline(report);
  if (report.planned) out << levers(report.planned->plan) << sites(report.planned->plan) << last(report);
  out << curve(report)
      << "</article>\n<footer>made by <code>ullage plan</code>; this page needs no network</footer>\n"
         "<script nonce=\"ullage\">\n"
      << kPlanScript << "</script>\n</body>\n</html>\n";
}

}  // namespace ullage::report
