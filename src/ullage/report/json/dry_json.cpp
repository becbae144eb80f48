// SPDX-License-Identifier: Apache-2.0
// Writes a DryReport as JSON: the contract "ullage-dry", version 1, in docs/cli.md.
#include "ullage/report/dry_report.h"
#include "ullage/report/json_values.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

namespace ullage::report {
namespace {

Json place_of(const DryReport::Place& place) {
  if (place.file.empty()) return nullptr;
  return {{"file", place.file}, {"line", place.line}, {"function", place.function}};
}

const char* name_of(DryReport::EndedBy by) {
  switch (by) {
    case DryReport::EndedBy::Program:
      return "program";
    case DryReport::EndedBy::Steps:
      return "steps";
    case DryReport::EndedBy::Seconds:
      return "seconds";
  }
  return "";
}

const char* law_of(const DryReport& report) {
  if (report.bounds.empty()) return "exact";
  const bool above = std::ranges::all_of(report.bounds, [](const auto& one) { return one.is_the_most(); });
  return above ? "bound" : "none";
}

Json cards_of(const DryReport& report) {
  Json cards = Json::array();
  for (const DryReport::Card& card : report.cards) {
    cards.push_back({{"peak_bytes", card.taken.count},
                     {"used_peak_bytes", card.used.count},
                     {"context_bytes", card.context.count},
                     {"requested_peak_bytes", card.requested.count},
                     {"allocated_peak_bytes", card.allocated.count},
                     {"reserved_peak_bytes", card.reserved.count}});
  }
  return cards;
}

Json filled_of(const DryReport::HostFilled& filled) {
  Json json = {
      {"left_bytes", filled.left.count},     {"most_bytes", filled.most.count}, {"process", filled.process},
      {"command", filled.command},           {"held_bytes", filled.held.count}, {"file_bytes", filled.files.count},
      {"pinned_bytes", filled.pinned.count}, {"place", place_of(filled.place)}, {"growth", Json::array()}};
  for (const DryReport::Growth& one : filled.growth) {
    json["growth"].push_back({{"place", place_of(one.place)}, {"bytes", one.bytes.count}});
  }
  return json;
}

}  // namespace

void write_json(const DryReport& report, std::ostream& out) {
  Json json;
  json["format"] = "ullage-dry";
  json["version"] = 1;
  json["basis"] = "dry";
  json["command"] = report.command;
  json["device"] = {{"name", report.card_word}, {"product", report.card_name}, {"bytes", report.card_memory.count}};
  json["torch"] = report.torch.empty() ? Json(nullptr) : Json(report.torch);
  const std::optional<bool> fits = report.fits();
  json["fits"] = fits ? Json(*fits) : Json(nullptr);
  json["cards"] = cards_of(report);
  json["exit_code"] = report.exit_code;
  json["ended_by"] = name_of(report.ended_by);
  json["steps"] = report.steps();
  json["seconds"] = report.wall.count;
  json["host_peak_bytes"] = report.host_peak.count;
  json["host_ran_out"] = report.host_ran_out;
  json["host_filled"] = report.host_filled ? filled_of(*report.host_filled) : Json(nullptr);
  json["pinned_peak_bytes"] = report.pinned_peak.count;
  json["refused"] = Json::array();
  for (const DryReport::Refused& one : report.refused) {
    json["refused"].push_back({{"card", one.card}, {"bytes", one.request.count}, {"place", place_of(one.place)}});
  }
  json["error"] = nullptr;
  if (report.error) {
    json["error"] = {
        {"type", report.error->type}, {"text", report.error->text}, {"place", place_of(report.error->place)}};
  }
  json["unknown_reads"] = {{"count", report.reads}, {"bytes", report.read_bytes.count}};
  json["law"] = law_of(report);
  json["bounds"] = Json::array();
  for (const DryReport::Bound& one : report.bounds) {
    json["bounds"].push_back(
        {{"function", one.function}, {"taken_as", one.how}, {"place", place_of(one.place)}, {"calls", one.calls}});
  }
  json["unknown_functions"] = report.unknown_functions;
  json["notes"] = report.notes;
  json["calibrated"] =
      report.reads == 0 && report.bounds.empty() && report.notes.empty() && report.unknown_functions.empty();
  json["largest"] = nullptr;
  if (report.largest) {
    const auto number = [](std::optional<std::int64_t> value) { return value ? Json(*value) : Json(nullptr); };
    json["largest"] = {{"of", report.largest->of},
                       {"fits", number(report.largest->fits)},
                       {"too_large", number(report.largest->too_large)}};
  }
  json["history"] = report.history_file ? Json(*report.history_file) : Json(nullptr);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace ullage::report
