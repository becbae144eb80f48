// SPDX-License-Identifier: Apache-2.0
// Writes a RunReport as JSON: the contract "ullage-run", version 1, in docs/cli.md. New fields may be added at any
// time. Removing a field or changing its meaning needs a new version.
#include "ullage/report/json_values.h"
#include "ullage/report/run_report.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <ostream>

namespace ullage::report {
namespace {

Json or_null(const std::optional<Seconds>& seconds) { return seconds ? Json(seconds->count) : Json(nullptr); }
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void write_moving(const Moving& moving, Json& json) {
  json["spilled_bytes"] = moving.out.count;
  json["restored_bytes"] = moving.back.count;
  json["spill_seconds"] = moving.waited.count;
  json["programs_held_seconds"] = moving.programs_held.count;
  json["spill_background_seconds"] = moving.beside.count;
  json["spill_peak_bytes"] = moving.peak.count;
  json["rewrites_avoided_bytes"] = moving.rewrites_avoided.count;
  json["unmovable_bytes"] = moving.unmovable.count;
  json["files_let_go_bytes"] = moving.files_let_go.count;
  json["unannounced_accesses"] = moving.unannounced_accesses;
  if (moving.locked) {
    json["locked_bytes"] = moving.locked->count;
    json["lock_failure"] = moving.lock_failure.empty() ? Json(nullptr) : Json(moving.lock_failure);
  }
  json["spill_message"] = moving.message.empty() ? Json(nullptr) : Json(moving.message);
}

Json calls_of(const store::DriverCalls& calls) {
  Json json;
  for (std::size_t i = 0; i < calls.size(); ++i) json[store::kDriverCallNames[i]] = calls[i];
  return json;
}

Json plan_of(const std::optional<PlanFollowed>& plan, bool on_card) {
  if (!plan) return nullptr;
  Json json{{"peak_bytes", plan->peak.count},
            {"peak_seen_bytes", plan->peak_seen > Bytes{} ? Json(plan->peak_seen.count) : Json(nullptr)},
            {"step_seconds", plan->step.count},
            {"overhead_seconds", plan->overhead.count},
            {"lower_bound_seconds", or_null(plan->bound)},
            {"adopted_at_step", plan->adopted_at_step},
            {"recomputes", plan->recomputes},
            {"spills", plan->spills},
            {"plans", plan->plans},
            {"steps", plan->steps},
            {"deviations", plan->deviations},
            {"rescues", plan->rescues}};
  if (on_card && plan->peak_seen == Bytes{}) json["last_step"] = nullptr;  // no step was seen from end to end
  if (on_card && plan->peak_seen > Bytes{}) {
    json["last_step"] = {
        {"driver_calls", calls_of(plan->calls)}, {"away_bytes", plan->away.count}, {"back_bytes", plan->back.count}};
  }
  return json;
}

Json recording_of(const RunReport& report) {
  return {{"file", *report.end.record_file},
          {"written", report.recorded},
          {"steps", report.recorded ? Json(report.recorded_steps) : Json(nullptr)}};
}

Json dry_of(const DryCardCount& dry) {
  return {{"card", dry.word},
          {"memory_bytes", dry.memory.count},
          {"peak_bytes", dry.peak.count},
          {"pinned_peak_bytes", dry.pinned_peak.count},
          {"launches", dry.launches},
          {"unread_launches", dry.unread_launches},
          {"kernels", dry.kernels},
          {"kernel_code_bytes", dry.kernel_code.count},
          {"findings", dry.findings},
          {"finding_texts", dry.finding_texts}};
}

Json cast_of(const CastSteps& steps) {
  static constexpr std::array kWhy = {"not_needed", "no_exact_plan", "dear_plan"};
  const auto step = [](std::uint64_t number) { return number > 0 ? Json(number) : Json(nullptr); };
  return {{"why", kWhy[static_cast<std::size_t>(steps.why)]},
          {"from_step", step(steps.from)},
          {"until_step", step(steps.until)},
          {"exact_step_seconds", or_null(steps.exact_step)},
          {"cast_step_seconds", or_null(steps.cast_step)}};
}

}  // namespace

void write_json(const RunReport& report, std::ostream& out) {
  Json json;
  json["format"] = "ullage-run";
  json["version"] = 1;
  json["command"] = report.end.command;
  json["device"] = device_name(report);
  json["exit_code"] = report.end.exit_code;
  json["threads"] = or_null(report.threads);
  json["outcome"] = name(report.outcome);
  json["attached"] = report.attached;
  json["budget_bytes"] = or_null(report.budget);
  const bool peak_known = report.attached || !report.card;
  json["process_peak_bytes"] = peak_known ? Json(report.process_peak.count) : Json(nullptr);
  json["tree_peak_bytes"] = or_null(report.tree_peak);
  json["counted_by"] = name(report.counted_by) != nullptr ? Json(name(report.counted_by)) : Json(nullptr);
  if (report.counted_by == CountedBy::Driver) json["count_note"] = report.count_note;
  json["over_budget_bytes"] = report.over_budget.count;
  json["outside_pool_bytes"] = or_null(report.outside_pool);
  json["pool_peak_bytes"] = or_null(report.pool_peak);
  json["pool_resident_peak_bytes"] = or_null(report.pool_resident_peak);
  json["plain_pool_peak_bytes"] = or_null(report.plain_pool_peak);
  json["steps"] = or_null(report.steps);
  json["seconds"] = report.end.wall.count;
  json["step_seconds_median"] = or_null(report.step_median);
  write_moving(report.moving, json);
  json["least_budget_bytes"] = or_null(report.least_budget);
  json["least_budget_is_partial"] = least_is_partial(report);
  json["recomputed_ops"] = report.recomputed_ops;
  json["recompute_seconds"] = report.recompute.count;
  if (report.driver_calls) json["driver_calls"] = calls_of(*report.driver_calls);
  json["tape_peak_bytes"] = report.tape.count;
  json["refused_requests"] = report.refused;
  json["message"] = report.message.empty() ? Json(nullptr) : Json(report.message);
  if (report.end.record_file) json["recording"] = recording_of(report);
  json["plan"] = plan_of(report.plan, report.card.has_value());
  if (report.end.dry) json["dry"] = dry_of(*report.end.dry);
  json["class"] = name(report.effect);
  json["changes"] = Json::array();
  for (const trace::ResultChange& change : report.changes)
    json["changes"].push_back(Json{{"what", change.what}, {"class", change.results}});
  json["allowed"] = report.end.allowed;
  json["half_ops"] = or_null(report.half_ops);
  if (report.cast_steps) json["cast"] = cast_of(*report.cast_steps);
  if (!report.end.ways.empty()) json["ways"] = ways_json(report.end.ways);
  json["state_sha256"] = or_null(report.state_sha256);
  // Words of a command line and names of ops may be any bytes. What is not UTF-8 is replaced, so that dump() does not
  // throw.
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace ullage::report
