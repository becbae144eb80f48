// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_plan_curve.h"

#include "ullage/base/sizes.h"
#include "ullage/report/command_text.h"
#include "ullage/report/html/html_text.h"
#include "ullage/report/plan_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace ullage::report {
namespace {

using plan::Plan;

// Sizes of the drawing, in its own units.
constexpr double kWidth = 760, kHeight = 340, kLeft = 58, kRight = 16, kTop = 16, kBottom = 44;

double percent(Seconds part, Seconds step) { return step.count > 0 ? 100 * part.count / step.count : 0; }

// Places a point of the curve in the drawing.
struct Scale {
  double least = 0, most = 1;  // bytes of memory
  double top = 1;              // percent
  double x(double bytes) const { return kLeft + (bytes - least) / (most - least) * (kWidth - kLeft - kRight); }
  double y(double value) const { return kHeight - kBottom - value / top * (kHeight - kTop - kBottom); }
};

bool has_plan(const Plan& plan) { return plan.outcome != Plan::Outcome::Infeasible; }

double memory(const PlanReport& report, const Plan& plan) {
  return static_cast<double>(report.beside.memory_for(plan.budget).count);
}

Scale scale_of(const PlanReport& report) {
  Scale scale;
  scale.least = memory(report, report.curve.front()), scale.most = memory(report, report.curve.back());
  scale.most = std::max(scale.most, scale.least + static_cast<double>((8_MiB).count));  // labels have two decimals
  const double spare = (scale.most - scale.least) / 25;
  scale.least = std::max(0.0, scale.least - spare), scale.most += spare;
  for (const Plan& plan : report.curve) {
    if (has_plan(plan)) scale.top = std::max(scale.top, 1.08 * percent(plan.overhead, plan.step));
  }
  return scale;
}

// Returns 1, 2, 5 or 10 times a power of `base`, so that at most about six fit into the span.
double round_step(double span, double base) {
  double unit = std::pow(base, std::floor(std::log(span / 5) / std::log(base)));
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    if (span / (unit * times) <= 6) return unit * times;
  }
  return unit * 10;
}

std::string grid(const Scale& scale) {
  std::string out;
  const double by = round_step(scale.top, 10);
  for (int line = 0; line * by <= scale.top; ++line) {
    const double value = line * by;
    const double y = scale.y(value);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">+{:g} %</text>",
        kLeft, kWidth - kRight, y, y, kLeft - 6, y + 4, value);
  }
  // Sizes are labeled at multiples of a power of two.
  double unit = std::exp2(std::floor(std::log2((scale.most - scale.least) / 4)));
  while ((scale.most - scale.least) / unit > 6) unit *= 2;
  const double first = std::ceil(scale.least / unit) * unit;
  for (int line = 0; first + line * unit <= scale.most; ++line) {
    const double bytes = first + line * unit;
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4}</text>",
        scale.x(bytes), kTop, kHeight - kBottom, kHeight - kBottom + 17,
        to_string(Bytes{static_cast<std::uint64_t>(bytes)}));
  }
  return out + fmt::format("<text class=\"faint\" x=\"{}\" y=\"{}\" text-anchor=\"end\">--memory</text>",
                           kWidth - kRight, kHeight - 8);
}

// A plan also serves every budget above its own. So the line stays level from each plan to the next larger budget that
// has one, and drops there.
std::string stairs(const PlanReport& report, const Scale& scale, const char* name,
                   const std::function<std::optional<Seconds>(const Plan&)>& value) {
  std::string points;
  std::optional<double> last;
  for (const Plan& plan : report.curve) {
    const std::optional<Seconds> seconds = has_plan(plan) ? value(plan) : std::nullopt;
    if (!seconds) continue;
    const double x = scale.x(memory(report, plan)), y = scale.y(percent(*seconds, plan.step));
    if (last) points += fmt::format("{:.1f},{:.1f} ", x, *last);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    last = y;
  }
  return points.empty() ? "" : fmt::format("<polyline class=\"{}\" points=\"{}\"/>", name, points);
}

std::string dots(const PlanReport& report, const Scale& scale) {
  std::string out = "<g class=\"dots\">";
  for (const Plan& plan : report.curve) {
    if (!has_plan(plan)) continue;
    const bool asked = report.planned && plan.budget == report.planned->plan.budget;
    out +=
        fmt::format("<circle{} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>--memory {}: {}{}</title></circle>",
                    asked ? " class=\"asked\"" : "", scale.x(memory(report, plan)),
                    scale.y(percent(plan.overhead, plan.step)), asked ? 7 : 4,
                    as_option(report.beside.memory_for(plan.budget)), escaped(percent_text(plan.overhead, plan.step)),
                    plan.bound ? ", at least " + escaped(percent_text(*plan.bound, plan.step)) : "");
  }
  return out + "</g>";
}

// Shades the part left of the least budget, where there is no plan.
std::string forbidden(const PlanReport& report, const Scale& scale) {
  const auto first = std::find_if(report.curve.begin(), report.curve.end(), has_plan);
  const double upto = first == report.curve.end() ? kWidth - kRight : scale.x(memory(report, *first));
  return fmt::format(
      "<rect class=\"none\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>no plan keeps to "
      "so little</title></rect>",
      kLeft, kTop, upto - kLeft, kHeight - kTop - kBottom);
}

}  // namespace

std::string plan_curve_svg(const PlanReport& report) {
  if (report.curve.empty()) return "";
  const Scale scale = scale_of(report);
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"budget against time, listed below\">",
                     kWidth, kHeight) +
         grid(scale) + forbidden(report, scale) +
         stairs(report, scale, "bound", [](const Plan& plan) { return plan.bound; }) +
         stairs(report, scale, "plan", [](const Plan& plan) { return std::optional(plan.overhead); }) +
         dots(report, scale) + "</svg>";
}

std::string plan_curve_table(const PlanReport& report) {
  std::string rows;
  for (const Plan& plan : report.curve) {
    rows += fmt::format(
        "<tr><td class=\"number\">{}</td><td class=\"number\" data-bytes=\"{}\">{}</td><td "
        "class=\"number\">{}</td><td class=\"number\">{}</td><td></td></tr>",
        as_option(report.beside.memory_for(plan.budget)), plan.budget.count, to_string(plan.budget),
        has_plan(plan) ? escaped(percent_text(plan.overhead, plan.step)) : "no plan",
        has_plan(plan) && plan.bound ? escaped(percent_text(*plan.bound, plan.step)) : "-");
  }
  return "<table><thead><tr><th class=\"number\">--memory</th><th class=\"number\">for tensors</th><th "
         "class=\"number\">time</th><th class=\"number\">at least</th><th></th></tr></thead><tbody>" +
         rows + "</tbody></table>";
}

}  // namespace ullage::report
