// SPDX-License-Identifier: Apache-2.0
// Reads what plan_file.cpp writes. A file may be edited, cut or of another version. If it contradicts itself, it is
// refused here. So a run need not check that indices exist and that actions stand in the order of the ops.
#include "ullage/plan/file/plan_file.h"
#include "ullage/plan/file/plan_file_checks.h"
#include "ullage/plan/file/plan_file_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

namespace ullage::plan {
namespace {

using UnorderedJson = nlohmann::json;

// Reads fields of JSON objects. Keeps the first error; a field that cannot be read yields zero, or an empty text or
// list.
class Reader final {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  bool failed() const { return error_.has_value(); }
  Error error() const { return *error_; }
  // `place`: "schedule[3].op".
  void fail(const std::string& place, std::string message) {
    if (!error_) error_ = Error{Error::Kind::BadFile, std::move(message), name_ + ": " + place};
  }

  // Returns the field; null if it is missing. If `object` is no object, that is an error too.
  const UnorderedJson* find(const UnorderedJson& object, const std::string& place, const char* key) {
    if (!object.is_object()) return fail(place.empty() ? "the whole" : place, "is not an object"), nullptr;
    const auto at = object.find(key);
    return at == object.end() ? nullptr : &*at;
  }
  const UnorderedJson* need(const UnorderedJson& object, const std::string& place, const char* key) {
    const UnorderedJson* value = find(object, place, key);
    if (value == nullptr) fail(join(place, key), "is missing");
    return value;
  }

  // Returns a whole number, which must be below `end`.
  std::uint64_t number(const UnorderedJson& value, const std::string& place, std::uint64_t end = UINT64_MAX) {
    if (!value.is_number_unsigned()) return fail(place, "is not a whole number from 0 up"), 0;
    const auto count = value.get<std::uint64_t>();
    if (count >= end) return fail(place, fmt::format("is {}, must be below {}", count, end)), 0;
    return count;
  }
  std::uint64_t number_at(const UnorderedJson& object, const std::string& place, const char* key,
                          std::uint64_t end = UINT64_MAX) {
    const UnorderedJson* value = need(object, place, key);
    return value == nullptr ? 0 : number(*value, join(place, key), end);
  }
  Seconds seconds_at(const UnorderedJson& object, const std::string& place, const char* key) {
    const UnorderedJson* value = need(object, place, key);
    if (value == nullptr) return {};
    const double count = value->is_number() ? value->get<double>() : -1;
    if (!std::isfinite(count) || count < 0) return fail(join(place, key), "is not a time"), Seconds{};
    return {count};
  }
  std::string text_at(const UnorderedJson& object, const std::string& place, const char* key) {
    const UnorderedJson* value = need(object, place, key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    return fail(join(place, key), "is not text"), "";
  }
  const UnorderedJson& list_at(const UnorderedJson& object, const char* key) {
    static const UnorderedJson none = UnorderedJson::array();
    const UnorderedJson* value = need(object, "", key);
    if (value != nullptr && !value->is_array()) fail(key, "is not a list");
    return failed() || value == nullptr ? none : *value;
  }
  // Returns a list of distinct numbers, which must be below `end`; empty if the field is missing.
  template <class Number>
  std::vector<Number> numbers_at(const UnorderedJson& object, const std::string& place, const char* key,
                                 std::uint64_t end) {
    std::vector<Number> out;
    const UnorderedJson* value = find(object, place, key);
    if (value == nullptr) return out;
    if (!value->is_array()) fail(join(place, key), "is not a list");
    std::set<std::uint64_t> seen;
    for (std::size_t i = 0; i < value->size() && !failed(); ++i) {
      const std::string item = fmt::format("{}[{}]", join(place, key), i);
      const std::uint64_t one = number((*value)[i], item, end);
      if (!seen.insert(one).second) fail(item, fmt::format("is {} a second time", one));
      if constexpr (std::is_integral_v<Number>) {
        out.push_back(static_cast<Number>(one));
      } else {
        out.push_back(Number{one});
      }
    }
    return out;
  }

  static std::string join(const std::string& place, const char* key) {
    return place.empty() ? std::string(key) : place + "." + key;
  }

 private:
  const std::string name_;
  std::optional<Error> error_;
};

template <class Word, class Words>
Word word_at(Reader& reader, const UnorderedJson& object, const std::string& place, const char* key,
             const Words& words) {
  const std::string text = reader.text_at(object, place, key);
  const auto index = index_of_word(words, text);
  if (!index)
    reader.fail(Reader::join(place, key), fmt::format("is '{}', expected one of {}", text, fmt::join(words, ", ")));
  return static_cast<Word>(index.value_or(0));
}

void read_figures(Reader& reader, const UnorderedJson& json, PlanFile& file) {
  Plan& plan = file.plan;
  plan.outcome = word_at<Plan::Outcome>(reader, json, "", "outcome", kOutcomeWords);
  plan.budget = Bytes{reader.number_at(json, "", "budget_bytes")};
  plan.peak = Bytes{reader.number_at(json, "", "peak_bytes")};
  plan.plain_peak = Bytes{reader.number_at(json, "", "plain_peak_bytes")};
  plan.least = Bytes{reader.number_at(json, "", "least_budget_bytes")};
  plan.least_set_by = reader.text_at(json, "", "least_budget_set_by");
  plan.step = reader.seconds_at(json, "", "step_seconds");
  plan.overhead = reader.seconds_at(json, "", "overhead_seconds");
  const UnorderedJson* bound = reader.find(json, "", "lower_bound_seconds");
  if (bound != nullptr && !bound->is_null()) plan.bound = reader.seconds_at(json, "", "lower_bound_seconds");
  const UnorderedJson* memory = reader.find(json, "", "memory_bytes");
  if (memory != nullptr && !memory->is_null()) file.memory = Bytes{reader.number(*memory, "memory_bytes")};
  if (reader.find(json, "", "device") != nullptr) file.device = reader.text_at(json, "", "device");
  file.torch = reader.text_at(json, "", "torch");
  file.seed = reader.number_at(json, "", "seed");
  for (const UnorderedJson& word : reader.list_at(json, "command")) {
    if (!word.is_string()) return reader.fail("command", "has a word that is not text");
    file.command.push_back(word.get<std::string>());
  }
}

void read_levers(Reader& reader, const UnorderedJson& json, Plan& plan) {
  const UnorderedJson& list = reader.list_at(json, "levers");
  for (std::size_t i = 0; i < list.size() && !reader.failed(); ++i) {
    const std::string place = fmt::format("levers[{}]", i);
    LeverUse& use = plan.levers.emplace_back();
    use.lever = reader.text_at(list[i], place, "lever");
    use.site = reader.text_at(list[i], place, "site");
    use.bytes = Bytes{reader.number_at(list[i], place, "bytes")};
    use.seconds = reader.seconds_at(list[i], place, "seconds");
  }
}

// Reads a key of 16 hexadecimal digits.
std::uint64_t key_at(Reader& reader, const UnorderedJson& op, const std::string& place) {
  const std::string text = reader.text_at(op, place, "key");
  std::uint64_t key = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, key, 16);
  if (error != std::errc{} || rest != end || text.size() != 16)
    reader.fail(place + ".key", "is not a key of 16 digits");
  return key;
}

void read_sites(Reader& reader, const UnorderedJson& json, Sites& sites) {
  const std::uint64_t values = sites.values = reader.number_at(json, "", "values");
  const UnorderedJson& list = reader.list_at(json, "ops");
  for (std::size_t i = 0; i < list.size() && !reader.failed(); ++i) {
    const std::string place = fmt::format("ops[{}]", i);
    Sites::Op op;
    op.key = key_at(reader, list[i], place);
    op.reads = reader.numbers_at<ValueIndex>(list[i], place, "reads", values);
    op.makes = reader.numbers_at<ValueIndex>(list[i], place, "makes", values);
    if (const UnorderedJson* small = reader.find(list[i], place, "small")) {
      if (!small->is_boolean()) reader.fail(place + ".small", "is neither true nor false");
      op.small = small->is_boolean() && small->get<bool>();
    }
    const std::uint64_t most = std::min(op.makes.size(), op.reads.size());
    if (reader.find(list[i], place, "overwrites") != nullptr) {
      op.overwrites = reader.number_at(list[i], place, "overwrites", most + 1);
    }
    op.unread = reader.numbers_at<std::uint32_t>(list[i], place, "unread", op.reads.size());
    op.batch_norm_reads = reader.numbers_at<ValueIndex>(list[i], place, "batch_norm_reads", values);
    sites.ops.push_back(std::move(op));
  }
  const UnorderedJson& carried = reader.list_at(json, "carried");
  for (std::size_t i = 0; i < carried.size() && !reader.failed(); ++i) {
    const std::string place = fmt::format("carried[{}]", i);
    if (!carried[i].is_array() || carried[i].size() != 2) return reader.fail(place, "is not a pair of values");
    sites.carried.emplace_back(ValueIndex{reader.number(carried[i][0], place, values)},
                               ValueIndex{reader.number(carried[i][1], place, values)});
  }
}

void read_schedule(Reader& reader, const UnorderedJson& json, PlanFile& file) {
  const std::uint64_t ops = file.sites.ops.size(), values = file.sites.values;
  const UnorderedJson& list = reader.list_at(json, "schedule");
  for (std::size_t i = 0; i < list.size() && !reader.failed(); ++i) {
    const std::string place = fmt::format("schedule[{}]", i);
    Action& action = file.plan.schedule.actions.emplace_back();
    action.what = word_at<Action::What>(reader, list[i], place, "do", kActionWords);
    action.at = OpIndex{reader.number_at(list[i], place, "at", ops)};
    if (const UnorderedJson* after = reader.find(list[i], place, "after"); after != nullptr) {
      if (!after->is_boolean()) return reader.fail(place + ".after", "is neither true nor false");
      action.after = after->get<bool>();
    }
    if (runs_an_op(action.what)) {
      action.op = OpIndex{reader.number_at(list[i], place, "op", ops)};
      action.keeps = reader.numbers_at<ValueIndex>(list[i], place, "keeps", values);
    } else {
      action.value = ValueIndex{reader.number_at(list[i], place, "value", values)};
    }
  }
  file.plan.schedule.away = reader.numbers_at<ValueIndex>(json, "", "away", values);
}

}  // namespace

Result<PlanFile> read_plan(std::string_view text, const std::string& name) {
  Reader reader(name);
  UnorderedJson json;
  try {
    json = UnorderedJson::parse(text);
  } catch (const UnorderedJson::exception& error) {
    const auto* parse = dynamic_cast<const UnorderedJson::parse_error*>(&error);
    const std::size_t at = parse != nullptr ? parse->byte : 0;
    return Error{Error::Kind::BadFile, "is not JSON, so it is not a plan; write one with 'ullage plan --out FILE'",
                 fmt::format("{}:{}", name, at)};
  }
  const UnorderedJson* format = reader.find(json, "", "format");
  if (format == nullptr || *format != kPlanFormat)
    return Error{Error::Kind::BadFile, "is not a plan of Ullage; write one with 'ullage plan --out FILE'", name};
  const std::uint64_t version = reader.number_at(json, "", "version");
  if (!reader.failed() && version != kPlanVersion) {
    reader.fail("version", fmt::format("is {}, this Ullage reads {}: make the plan again with this Ullage", version,
                                       kPlanVersion));
  }
  PlanFile file;
  if (!reader.failed()) read_figures(reader, json, file);
  if (!reader.failed()) read_levers(reader, json, file.plan);
  if (!reader.failed()) read_sites(reader, json, file.sites);
  if (!reader.failed()) read_schedule(reader, json, file);
  if (reader.failed()) return reader.error();
  if (const auto wrong = misfit(file)) {
    return Error{Error::Kind::BadFile, wrong->message, name + ": " + wrong->place};
  }
  return file;
}

}  // namespace ullage::plan
