// SPDX-License-Identifier: Apache-2.0
// Writes diagnoses as JSON: the contract "ullage-diagnosis", version 1, in docs/cli.md. New fields may be added at any
// time. Removing a field or changing its meaning needs a new version.
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/input_history.h"
#include "ullage/report/json_values.h"

#include <nlohmann/json.hpp>

#include <ostream>

namespace ullage::report {
namespace {

using diagnose::Diagnosis;

// How many frames of a stack are written, innermost first. The outer ones beyond these add nothing.
constexpr std::size_t kMostFrames = 64;

Json source_of(const diagnose::Source& source) {
  Json json;
  json["kind"] = source.kind;
  json["file"] = source.file;
  json["torch"] = or_null(source.torch);
  json["form"] = or_null(source.form);
  json["line"] = source.line > 0 ? Json(source.line) : Json(nullptr);
  json["repeated"] = source.repeated;
  json["take"] = source.take ? Json(*source.take + 1) : Json(nullptr);
  json["knobs"] = Json::array();
  for (const Knob& knob : source.knobs) json["knobs"].push_back({{"name", knob.name}, {"value", knob.value}});
  return json;
}

Json tool_of(const std::optional<diagnose::Spoken>& tool) {
  if (!tool) return nullptr;
  return {{"id", tool->id}, {"name", tool->name}, {"seen", tool->seen}};
}

Json facts_of(const diagnose::Facts& facts) {
  Json json;
  json["device"] = facts.device ? Json(*facts.device) : Json(nullptr);
  json["requested_bytes"] = or_null(facts.requested);
  json["capacity_bytes"] = or_null(facts.capacity);
  json["allocated_bytes"] = or_null(facts.allocated);
  json["free_bytes"] = or_null(facts.free);
  json["reserved_bytes"] = or_null(facts.reserved);
  json["unallocated_bytes"] = or_null(facts.unallocated);
  json["process_bytes"] = or_null(facts.process);
  json["allowed_bytes"] = or_null(facts.allowed);
  json["needed_bytes"] = or_null(facts.needed);
  return json;
}

const char* kind_id(diagnose::Bar::Part::Kind kind) {
  using Kind = diagnose::Bar::Part::Kind;
  switch (kind) {
    case Kind::Live:
      return "live";
    case Kind::Usable:
      return "usable";
    case Kind::Stuck:
      return "stuck";
    case Kind::NotPyTorch:
      return "not_pytorch";
    case Kind::Free:
      break;
  }
  return "free";
}

Json bar_of(const std::optional<diagnose::Bar>& bar) {
  if (!bar) return nullptr;
  Json json;
  json["of"] = bar->of;
  json["bytes"] = bar->total.count;
  json["parts"] = Json::array();
  for (const diagnose::Bar::Part& part : bar->parts) {
    json["parts"].push_back({{"kind", kind_id(part.kind)}, {"name", part.name}, {"bytes", part.bytes.count}});
  }
  return json;
}

Json frames_of(trace::StackId stack, const trace::Stacks* stacks) {
  Json json = Json::array();
  if (stacks == nullptr) return json;
  for (const trace::FrameId id : stacks->frames(stack)) {
    if (json.size() == kMostFrames) break;
    const trace::Frame& frame = stacks->frame(id);
    json.push_back({{"file", frame.file}, {"line", frame.line}, {"function", frame.function}});
  }
  return json;
}

Json peak_of(const std::optional<diagnose::Peak>& peak, const trace::Stacks* stacks) {
  if (!peak) return nullptr;
  Json json;
  json["bytes"] = peak->bytes.count;
  json["event"] = peak->event ? Json(peak->event->value) : Json(nullptr);
  json["owners"] = Json::array();
  for (const trace::Owner& owner : peak->owners) {
    json["owners"].push_back({{"name", owner.name},
                              {"category", std::string(trace::name(owner.category))},
                              {"bytes", owner.bytes.count},
                              {"storages", owner.storages},
                              {"frames", frames_of(owner.stack, stacks)}});
  }
  return json;
}

Json place_of(const std::optional<diagnose::Place>& place) {
  if (!place) return nullptr;
  Json json;
  json["op"] = or_null(place->op);
  json["layer"] = or_null(place->layer);
  json["line"] = or_null(place->line);
  json["part"] = or_null(place->part);
  json["phase"] = place->phase == trace::Phase::Unknown ? Json(nullptr) : Json(std::string(trace::name(place->phase)));
  json["step"] = place->step > 0 ? Json(place->step) : Json(nullptr);
  return json;
}

Json devices_of(const std::vector<diagnose::DeviceShare>& devices) {
  Json json = Json::array();
  for (const diagnose::DeviceShare& share : devices) {
    json.push_back({{"device", share.device},
                    {"live_peak_bytes", share.live_peak.count},
                    {"reserved_peak_bytes", share.reserved_peak.count},
                    {"refused_bytes", or_null(share.refused)}});
  }
  return json;
}

Json saved_of(const std::optional<diagnose::Saved>& saved) {
  if (!saved) return nullptr;
  Json json;
  json["bytes"] = saved->bytes.count;
  json["by"] = Json::array();
  for (const diagnose::SavedBy& row : saved->by) {
    json["by"].push_back({{"name", row.name},
                          {"line", row.line.empty() ? Json(nullptr) : Json(row.line)},
                          {"bytes", row.bytes.count},
                          {"storages", row.storages}});
  }
  return json;
}

Json replay_of(const std::optional<sim::Replay>& replay) {
  if (!replay) return nullptr;
  Json json;
  json["device"] = replay->device;
  json["complete"] = replay->complete;
  json["reconstructed"] = replay->reconstructed;
  json["same_end"] = replay->same_end;
  json["why_not"] = replay->why_not.empty() ? Json(nullptr) : Json(replay->why_not);
  json["events"] = replay->events;
  json["segments_real"] = replay->segments_real;
  json["segments_model"] = replay->segments_model;
  json["reserved_peak_real_bytes"] = replay->reserved_peak_real.count;
  json["reserved_peak_model_bytes"] = replay->reserved_peak_model.count;
  json["first_difference"] = nullptr;
  if (const auto& difference = replay->first_difference) {
    json["first_difference"] = {{"event", difference->event.value},
                                {"real", difference->real.count},
                                {"model", difference->model.count},
                                {"what", difference->what}};
  }
  return Json::array({json});  // the contract has an array here, of one entry
}

const char* basis_id(diagnose::Basis basis) {
  switch (basis) {
    case diagnose::Basis::Simulated:
      return "simulated";
    case diagnose::Basis::Computed:
      return "computed";
    case diagnose::Basis::Known:
      break;
  }
  return "known";
}

void add_answer(const Diagnosis& diagnosis, Json& json) {
  json["causes"] = Json::array();
  for (const diagnose::Cause& cause : diagnosis.causes) {
    json["causes"].push_back(
        {{"id", cause.id}, {"title", cause.title}, {"confidence", cause.confidence}, {"evidence", cause.evidence}});
  }
  json["remedies"] = Json::array();
  for (const diagnose::Remedy& remedy : diagnosis.remedies) {
    json["remedies"].push_back({{"id", remedy.id},
                                {"action", remedy.action},
                                {"saves_bytes", or_null(remedy.saves)},
                                {"basis", basis_id(remedy.basis)},
                                {"why", or_null(remedy.why)}});
  }
  json["notes"] = diagnosis.notes;
  json["to_know_more"] = or_null(diagnosis.to_know_more);
  json["next"] = or_null(diagnosis.next);
}

Json object_of(const Diagnosis& diagnosis, const trace::Stacks* stacks) {
  Json json;
  json["format"] = "ullage-diagnosis";
  json["version"] = 1;
  json["source"] = source_of(diagnosis.source);
  json["tool"] = tool_of(diagnosis.tool);
  json["headline"] = diagnosis.headline;
  json["facts"] = facts_of(diagnosis.facts);
  json["bar"] = bar_of(diagnosis.bar);
  json["peak"] = peak_of(diagnosis.peak, stacks);
  json["place"] = place_of(diagnosis.place);
  json["devices"] = devices_of(diagnosis.devices);
  json["saved"] = saved_of(diagnosis.saved);
  json["replay"] = replay_of(diagnosis.replay);
  add_answer(diagnosis, json);
  return json;
}

}  // namespace

void write_json(const std::vector<Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out) {
  ULLAGE_CHECK(!diagnoses.empty(), "a report of no diagnosis");
  const auto one = [&](const Diagnosis& diagnosis) { return object_of(diagnosis, stacks_of(input, diagnosis)); };
  Json json = one(diagnoses.front());
  json["more"] = Json::array();
  for (std::size_t i = 1; i < diagnoses.size(); ++i) json["more"].push_back(one(diagnoses[i]));
  // Names in a file may be any bytes. What is not UTF-8 is replaced, so that dump() does not throw.
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace ullage::report
