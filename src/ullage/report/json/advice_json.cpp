// SPDX-License-Identifier: Apache-2.0
// Writes an Advice as JSON: the contract "ullage-advice", version 1, in docs/cli.md.
#include "ullage/report/advice_report.h"
#include "ullage/report/json_values.h"

#include <nlohmann/json.hpp>

#include <ostream>

namespace ullage::report {
namespace {

const char* word(advise::Basis basis) {
  switch (basis) {
    case advise::Basis::Tried:
      return "tried";
    case advise::Basis::Planned:
      return "planned";
    case advise::Basis::Computed:
      return "computed";
    case advise::Basis::NotTried:
      return "not_tried";
  }
  return "";
}

Json place_of(const advise::Place& place) {
  if (place.file.empty()) return nullptr;
  return {{"file", place.file}, {"line", place.line}};
}

Json plainly_of(const std::optional<advise::Plainly>& plainly) {
  if (!plainly) return nullptr;
  return {{"peak_bytes", plainly->peak.count},
          {"others_bytes", plainly->others.count},
          {"lean_malloc_bytes", or_null(plainly->lean)}};
}

Json row_of(const advise::Row& row) {
  Json json;
  json["id"] = row.id;
  json["name"] = row.name;
  json["basis"] = word(row.basis);
  json["class"] = row.effect_known ? Json(name(row.effect)) : Json(nullptr);
  json["fits"] = row.fits ? Json(*row.fits) : Json(nullptr);
  json["peak_bytes"] = or_null(row.peak);
  json["without_ullage"] = plainly_of(row.plainly);
  json["more_time"] = row.more_time ? Json(*row.more_time) : Json(nullptr);
  json["action"] = or_null(row.action);
  json["place"] = place_of(row.place);
  json["note"] = or_null(row.note);
  return json;
}

}  // namespace

void write_json(const advise::Advice& advice, std::ostream& out) {
  Json json;
  json["format"] = "ullage-advice";
  json["version"] = 1;
  json["command"] = advice.command;
  json["device"] = {{"name", advice.device}, {"bytes", advice.memory.count}};
  json["plain"] = {{"fits", advice.plain.fits ? Json(*advice.plain.fits) : Json(nullptr)},
                   {"peak_bytes", or_null(advice.plain.peak)},
                   {"without_ullage", plainly_of(advice.plain.plainly)},
                   {"refused", or_null(advice.refused)}};
  json["remedies"] = Json::array();
  for (const advise::Row& row : advice.rows) json["remedies"].push_back(row_of(row));
  json["notes"] = advice.notes;
  json["time_basis"] = or_null(advice.time_basis);
  json["runs"] = advice.runs;
  json["seconds"] = advice.wall.count;
  // A name or line of the program may hold bytes that are not UTF-8.
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace ullage::report
