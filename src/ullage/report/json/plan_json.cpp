// SPDX-License-Identifier: Apache-2.0
// Writes a plan as JSON: the contract "ullage-plan", version 1, in docs/cli.md. It is the plan's file with more fields:
// what is beside the tensors, the curve, and the ways that were compared.
#include "ullage/plan/file/plan_file_words.h"
#include "ullage/report/json_values.h"
#include "ullage/report/plan_report.h"
#include "ullage/report/plan_words.h"

#include <nlohmann/json.hpp>

#include <ostream>
#include <sstream>

namespace ullage::report {
namespace {

Json curve_of(const PlanReport& report) {
  Json json = Json::array();
  for (const plan::Plan& plan : report.curve) {
    json.push_back({{"memory_bytes", report.beside.memory_for(plan.budget).count},
                    {"budget_bytes", plan.budget.count},
                    {"kept_free_bytes", report.beside.kept_free(plan.budget).count},
                    {"outcome", plan::word_of(plan.outcome)},
                    {"peak_bytes", plan.peak.count},
                    {"overhead_seconds", plan.overhead.count},
                    {"lower_bound_seconds", plan.bound ? Json(plan.bound->count) : Json(nullptr)}});
  }
  return json;
}

Json beside_of(const PlanReport& report) {
  Json json = {{"outside_bytes", report.beside.outside.count},
               {"margin_bytes", report.beside.margin.count},
               {"rounding_bytes", report.beside.rounding.count}};
  // Left out if no plan was asked for: then each point of the curve has its own figure.
  if (report.planned) json["kept_free_bytes"] = kept_free(report).count;
  return json;
}

}  // namespace

Json ways_json(std::span<const ComparedWay> ways) {
  Json json = Json::array();
  for (const ComparedWay& way : ways) {
    Json one = way.file.empty() ? Json::object() : Json{{"file", way.file}};
    one.update(Json{{"changes", way.changes},
                    {"class", plan::word_of(way.results)},
                    {"allowed", way.allowed},
                    {"chosen", way.chosen},
                    {"outcome", plan::word_of(way.outcome)},
                    {"plain_peak_bytes", way.plain_peak.count},
                    {"peak_bytes", way.peak.count},
                    {"least_memory_bytes", way.least.count},
                    {"step_seconds", way.step.count},
                    {"overhead_seconds", way.overhead.count}});
    json.push_back(std::move(one));
  }
  return json;
}

void write_json(const PlanReport& report, std::ostream& out) {
  Json json;
  if (report.planned) {
    std::stringstream file;
    write_plan(*report.planned, file);
    json = Json::parse(file);
  } else {
    json = {{"format", "ullage-plan-curve"},
            {"version", 1},
            {"plain_peak_bytes", report.step.peak.count},
            {"step_seconds", report.step.seconds.count}};
  }
  json["beside"] = beside_of(report);
  if (!report.curve.empty()) json["curve"] = curve_of(report);
  for (const ComparedWay& way : report.ways) {
    if (way.chosen) json["class"] = plan::word_of(way.results);
  }
  if (!report.ways.empty()) json["ways"] = ways_json(report.ways);
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace ullage::report
