// SPDX-License-Identifier: Apache-2.0
// Writes predictions as JSON: the contract "ullage-prediction", version 1, in docs/cli.md. New fields may be added at
// any time. Removing a field or changing its meaning needs a new version.
#include "ullage/report/json_values.h"
#include "ullage/report/prediction_report.h"

#include <nlohmann/json.hpp>

#include <ostream>

namespace ullage::report {
namespace {

using predict::Prediction;

Json knobs_of(const std::vector<Knob>& knobs) {
  Json json = Json::object();
  for (const Knob& knob : knobs) json[knob.name] = knob.value;
  return json;
}

Json rows_of(const std::vector<predict::Row>& rows) {
  Json json = Json::array();
  for (const predict::Row& row : rows) {
    json.push_back({{"name", row.name}, {"bytes", row.bytes.count}, {"source", or_null(row.source)}});
  }
  return json;
}

Json owners_of(const std::vector<trace::Owner>& owners) {
  Json json = Json::array();
  for (const trace::Owner& owner : owners) {
    json.push_back({{"name", owner.name},
                    {"category", std::string(trace::name(owner.category))},
                    {"bytes", owner.bytes.count},
                    {"storages", owner.storages}});
  }
  return json;
}

Json largest_of(const std::vector<predict::LargestThatFits>& all) {
  Json json = Json::array();
  for (const predict::LargestThatFits& one : all) {
    json.push_back({{"knob", one.knob},
                    {"value", one.value},
                    {"process_peak_bytes", one.process_peak.count},
                    {"law", name(one.law)}});
    if (!one.word.empty()) json.back()["word"] = one.word;
    if (one.smallest) json.back()["smallest"] = true;
    if (!one.needs.empty()) json.back()["needs"] = one.needs;
  }
  return json;
}

Json square_of(const std::optional<predict::LargestSquare>& square) {
  if (!square) return nullptr;
  return {{"sides", square->sides},
          {"value", square->found.value},
          {"process_peak_bytes", square->found.process_peak.count},
          {"law", name(square->found.law)}};
}

Json cuda_of(const std::optional<predict::Cuda>& cuda) {
  if (!cuda) return nullptr;
  Json json;
  json["allocated_peak_bytes"] = cuda->allocated_peak.count;
  json["reserved_peak_bytes"] = cuda->reserved_peak.count;
  json["process_peak_bytes"] = cuda->process_peak.count;
  json["capacity_bytes"] = or_null(cuda->capacity);
  json["fits"] = cuda->answer ? Json(cuda->answer->fits) : Json(nullptr);
  json["calibrated"] = cuda->calibrated;
  json["rows"] = rows_of(cuda->rows);
  return json;
}

Json plan_of(const std::optional<predict::PlannedFit>& plan, Bytes others) {
  if (!plan) return nullptr;
  return {{"fits", plan->fits},
          {"least_bytes", (plan->least + others).count},
          {"more_time", plan->fits ? Json(plan->more_time) : Json(nullptr)},
          {"recompute", plan->recomputed},
          {"spill", plan->spilled}};
}

void add_figures(const Prediction& prediction, Json& json) {
  json["pool_peak_bytes"] = prediction.pool_peak.count;
  json["pool_resident_peak_bytes"] = prediction.pool_resident_peak.count;
  json["process_peak_bytes"] = prediction.process_peak.count;
  json["others_bytes"] = prediction.others.count;
  json["memory_bytes"] = or_null(prediction.memory);
  json["fits"] = prediction.memory ? Json(prediction.fits()) : Json(nullptr);
  json["plan"] = plan_of(prediction.planned, prediction.others);
  const bool asked = prediction.memory && !prediction.largest.empty();
  json["largest_that_fits"] = asked ? Json(prediction.largest.front().value) : Json(nullptr);
  json["largest"] = largest_of(prediction.largest);
  json["largest_square"] = square_of(prediction.largest_square);
}

}  // namespace

const char* name(predict::Law law) {
  switch (law) {
    case predict::Law::Exact:
      return "exact";
    case predict::Law::Bound:
      return "bound";
    case predict::Law::None:
      break;
  }
  return "none";
}

void write_json(const Prediction& prediction, std::ostream& out) {
  Json json;
  json["format"] = "ullage-prediction";
  json["version"] = 1;
  json["at"] = knobs_of(prediction.at);
  json["law"] = name(prediction.law);
  json["why"] = prediction.why;
  json["measured"] = prediction.measured;
  json["slack_bytes"] = prediction.slack.count;
  add_figures(prediction, json);
  json["phases_not_seen"] = prediction.phases_not_seen;
  json["rows"] = rows_of(prediction.rows);
  json["owners"] = owners_of(prediction.owners);
  json["peak_op"] = or_null(prediction.peak_op);
  json["peak_layer"] = or_null(prediction.peak_layer);
  json["peak_phase"] = or_null(prediction.peak_phase);
  json["peak_step"] = prediction.peak_step > 0 ? Json(prediction.peak_step) : Json(nullptr);
  json["seconds"] = prediction.step.count;
  json["cuda"] = cuda_of(prediction.cuda);
  // Names in a recording may be any bytes. What is not UTF-8 is replaced, so that dump() does not throw.
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace ullage::report
