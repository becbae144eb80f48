// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/file_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace ullage::trace {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<Take::End, std::string_view>, 3> kEnds = {{
    {Take::End::Program, "program"},
    {Take::End::StepBorder, "step_border"},
    {Take::End::OutOfMemory, "out_of_memory"},
}};

std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json from_knobs(const std::vector<Knob>& knobs) {
  json list = json::array();
  for (const Knob& knob : knobs) list.push_back({{"name", knob.name}, {"value", knob.value}});
  return list;
}

json from_choices(const std::vector<Choice>& choices) {
  json list = json::array();
  for (const Choice& one : choices) {
    list.push_back({{"name", one.name}, {"value", one.value}, {"values", one.values}});
    if (!one.words.empty()) list.back()["words"] = one.words;
    if (!one.results.empty()) list.back()["class"] = one.results;
  }
  return list;
}

json from_changes(const std::vector<ResultChange>& changes) {
  json list = json::array();
  for (const ResultChange& one : changes) list.push_back({{"what", one.what}, {"class", one.results}});
  return list;
}

// Whether this is a class of changed results (ResultChange::results).
bool is_class(const json& value) { return value == "rounding" || value == "different"; }

// Whether `list` has one text for each of `values`.
bool all_texts(const json& list, const json& values) {
  return list.is_array() && list.size() == values.size() &&
         std::all_of(list.begin(), list.end(), [](const json& one) { return one.is_string(); });
}

bool all_integers(const json& list) {
  return list.is_array() && std::ranges::all_of(list, [](const json& one) {
           return one.is_number_integer() && !(one.is_number_unsigned() && one.get<std::uint64_t>() > INT64_MAX);
         });
}

// Reads the fields of one object. If a field is missing or of another type, its value is empty. The first such field is
// kept as the problem, and later fields are not read.
class Fields final {
 public:
  explicit Fields(std::string_view text) : object_(json::parse(text, nullptr, false)) {
    if (!object_.is_object()) problem_ = "it is not a JSON object";
  }

  std::string text(const char* key) {
    const json* value = field(key, &json::is_string, "a text");
    return value == nullptr ? std::string() : value->get<std::string>();
  }
  std::uint64_t count(const char* key) {
    constexpr std::uint64_t kMost = 1ull << 62;
    const json* value = field(key, &json::is_number_unsigned, "a count");
    const std::uint64_t count = value == nullptr ? 0 : value->get<std::uint64_t>();
    if (count > kMost) return fail(key, "a count below 2^62"), 0;
    return count;
  }
  // 0 if the field is missing.
  std::uint64_t count_if_there(const char* key) { return problem_ || !object_.contains(key) ? 0 : count(key); }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> texts;
    const json* list = field(key, &json::is_array, "a list of texts");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      if (!(*list)[i].is_string()) return fail(key, "a list of texts"), texts;
      texts.push_back((*list)[i].get<std::string>());
    }
    return texts;
  }
  std::vector<Knob> knobs(const char* key) {
    std::vector<Knob> knobs;
    const json* list = field(key, &json::is_array, "a list of names and values");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const json& one = (*list)[i];
      const bool whole = one.is_object() && one.contains("name") && one["name"].is_string() && one.contains("value") &&
                         one["value"].is_number_integer();
      if (!whole || (one["value"].is_number_unsigned() && one["value"].get<std::uint64_t>() > INT64_MAX)) {
        return fail(key, "a list of names and values"), knobs;
      }
      knobs.push_back({one["name"].get<std::string>(), one["value"].get<std::int64_t>()});
    }
    return knobs;
  }
  // Empty if the field is missing.
  std::vector<std::string> texts_if_there(const char* key) {
    return problem_ || !object_.contains(key) ? std::vector<std::string>() : texts(key);
  }
  // Empty if the field is missing.
  std::vector<Choice> choices(const char* key) {
    std::vector<Choice> choices;
    if (problem_ || !object_.contains(key)) return choices;
    const json* list = field(key, &json::is_array, "a list of choices");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const json& one = (*list)[i];
      const bool whole = one.is_object() && one.contains("name") && one["name"].is_string() && one.contains("value") &&
                         all_integers(json::array({one["value"]})) && one.contains("values") &&
                         all_integers(one["values"]) &&
                         (!one.contains("words") || all_texts(one["words"], one["values"])) &&
                         (!one.contains("class") || is_class(one["class"]));
      if (!whole) return fail(key, "a list of choices"), choices;
      choices.push_back({one["name"].get<std::string>(), one["value"].get<std::int64_t>(),
                         one["values"].get<std::vector<std::int64_t>>(), one.value("words", std::vector<std::string>()),
                         one.value("class", std::string())});
    }
    return choices;
  }
  // Empty if the field is missing.
  std::vector<ResultChange> changes(const char* key) {
    std::vector<ResultChange> changes;
    if (problem_ || !object_.contains(key)) return changes;
    const json* list = field(key, &json::is_array, "a list of changes");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const json& one = (*list)[i];
      const bool whole = one.is_object() && one.contains("what") && one["what"].is_string() && one.contains("class") &&
                         is_class(one["class"]);
      if (!whole) return fail(key, "a list of changes"), changes;
      changes.push_back({one["what"].get<std::string>(), one["class"].get<std::string>()});
    }
    return changes;
  }
  bool flag(const char* key, bool if_missing) {
    if (problem_ || !object_.contains(key)) return if_missing;
    const json* value = field(key, &json::is_boolean, "true or false");
    return value == nullptr ? if_missing : value->get<bool>();
  }
  void fail(const char* key, std::string_view wanted) {
    if (!problem_) problem_ = "\"" + std::string(key) + "\" is not " + std::string(wanted);
  }
  std::optional<std::string> problem() const { return problem_; }

 private:
  const json* field(const char* key, bool (json::*is)() const noexcept, std::string_view wanted) {
    if (problem_) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end() && ((*found).*is)()) return &*found;
    fail(key, wanted);
    return nullptr;
  }

  json object_;
  std::optional<std::string> problem_;
};

}  // namespace

std::string head_json(const TraceFile& file) {
  return dumped({{"format", "ullage-trace"},
                 {"torch", file.torch},
                 {"device", file.device},
                 {"command", file.command},
                 {"at", from_knobs(file.at)},
                 {"phases_left_out", file.phases_left_out},
                 {"choices", from_choices(file.choices)},
                 {"sides", file.sides},
                 {"onednn", file.onednn},
                 {"changes", from_changes(file.changes)}});
}

std::string take_json(const TakeHead& take) {
  return dumped(
      {{"knobs", from_knobs(take.knobs)}, {"first_storage", take.first_storage}, {"first_op", take.first_op}});
}

std::string take_end_json(const TakeEnd& end) {
  const ProcessFigures& process = end.process;
  return dumped({{"end", kEnds[static_cast<std::size_t>(end.why)].second},
                 {"events", end.events},
                 {"process_peak_bytes", process.peak.count},
                 {"outside_peak_bytes", process.outside_peak.count},
                 {"pool_live_peak_bytes", process.pool_live_peak.count},
                 {"pool_resident_peak_bytes", process.pool_resident_peak.count},
                 {"threads", process.threads},
                 {"outside_expected_bytes", process.outside_expected.count}});
}

std::optional<std::string> read_head(std::string_view text, TraceFile& file) {
  Fields in(text);
  if (in.text("format") != "ullage-trace") in.fail("format", "\"ullage-trace\"");
  file.torch = in.text("torch");
  file.device = in.text("device");
  file.command = in.texts("command");
  file.at = in.knobs("at");
  file.phases_left_out = in.texts("phases_left_out");
  file.choices = in.choices("choices");
  file.sides = in.texts_if_there("sides");
  file.onednn = in.flag("onednn", true);
  file.changes = in.changes("changes");
  return in.problem();
}

std::optional<std::string> read_take(std::string_view text, TakeHead& take) {
  Fields in(text);
  take = {in.knobs("knobs"), in.count("first_storage"), in.count("first_op")};
  return in.problem();
}

std::optional<std::string> read_take_end(std::string_view text, TakeEnd& end) {
  Fields in(text);
  const std::string why = in.text("end");
  end.events = in.count("events");
  end.process = {Bytes{in.count("process_peak_bytes")},
                 Bytes{in.count("outside_peak_bytes")},
                 Bytes{in.count("pool_live_peak_bytes")},
                 Bytes{in.count("pool_resident_peak_bytes")},
                 0,
                 Bytes{in.count_if_there("outside_expected_bytes")}};
  const std::uint64_t threads = in.count("threads");
  if (threads > UINT32_MAX) in.fail("threads", "a count below 2^32");
  end.process.threads = static_cast<std::uint32_t>(threads);
  for (const auto& one : kEnds) {
    if (one.second != why) continue;
    end.why = one.first;
    return in.problem();
  }
  in.fail("end", "one of \"program\", \"step_border\", \"out_of_memory\"");
  return in.problem();
}

}  // namespace ullage::trace
