// SPDX-License-Identifier: Apache-2.0
// Writes plans as JSON: the format "ullage-plan", version 1, of docs/cli.md. New fields may be added at any time. If a
// field is removed or changes its meaning, the format needs a new version. plan_file_reader.cpp reads it.
#include "ullage/plan/file/plan_file.h"

#include "ullage/plan/file/plan_file_checks.h"
#include "ullage/plan/file/plan_file_words.h"
#include "ullage/plan/model/stands_on.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ullage::plan {
namespace {

using Json = nlohmann::ordered_json;

template <class Ids>
Json numbers(const Ids& ids) {
  Json json = Json::array();
  for (const auto id : ids) json.push_back(id.value);
  return json;
}

Json of(const LeverUse& use) {
  return {{"site", use.site}, {"lever", use.lever}, {"bytes", use.bytes.count}, {"seconds", use.seconds.count}};
}

// Omits empty lists and zeros, because a step has thousands of ops.
Json of(const Sites::Op& op) {
  // The key is text, because a reader that keeps numbers as doubles would round it.
  Json json = {{"key", fmt::format("{:016x}", op.key)}};
  if (!op.reads.empty()) json["reads"] = numbers(op.reads);
  if (!op.makes.empty()) json["makes"] = numbers(op.makes);
  if (op.overwrites > 0) json["overwrites"] = op.overwrites;
  if (!op.unread.empty()) json["unread"] = op.unread;
  if (!op.batch_norm_reads.empty()) json["batch_norm_reads"] = numbers(op.batch_norm_reads);
  if (op.small) json["small"] = true;
  return json;
}

Json of(const Action& action) {
  Json json = {{"do", word_of(action.what)}, {"at", action.at.value}};
  if (action.after) json["after"] = true;
  if (runs_an_op(action.what)) {
    json["op"] = action.op.value;
    json["keeps"] = numbers(action.keeps);
  } else {
    json["value"] = action.value.value;
  }
  return json;
}

// Names in a recording may be any bytes. Replaces bytes that are not UTF-8, so that dump() does not throw.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

class Writer final {
 public:
  explicit Writer(std::ostream& out) : out_(out) { out_ << '{'; }
  void field(const char* name, const Json& value) { begin(name) << text_of(value); }
  template <class Items, class Of>
  void list(const char* name, const Items& items, const Of& of_item) {
    begin(name) << '[';
    bool first = true;
    for (const auto& item : items) {
      out_ << (first ? "\n  " : ",\n  ") << text_of(of_item(item));
      first = false;
    }
    out_ << ']';
  }
  void end() { out_ << "\n}\n"; }

 private:
  std::ostream& begin(const char* name) {
    out_ << (first_ ? "\n" : ",\n") << " \"" << name << "\": ";
    first_ = false;
    return out_;
  }
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

Sites sites_of(const Step& step) {
  // A card's step gives zero bytes to storages below StandsOn::least_in_pool, so they are below least_movable as well.
  const auto is_small = [&](ValueIndex value) {
    return step.storages[step.values[value].storage].bytes < StandsOn{}.least_movable;
  };
  Sites sites;
  sites.values = step.values.size();
  for (const StepOp& op : step.ops) {
    Sites::Op site;
    site.key = op.key, site.reads = op.reads, site.makes = op.makes;
    site.overwrites = op.overwrites, site.unread = op.unread;
    if (op.batch_norm) site.batch_norm_reads = op.batch_norm->reads;
    site.small = std::ranges::all_of(op.reads, is_small) && std::ranges::all_of(op.makes, is_small);
    sites.ops.push_back(std::move(site));
  }
  Table<StorageIndex, std::pair<ValueIndex, ValueIndex>> ends(step.storages.size());
  Table<StorageIndex, bool> valued(step.storages.size());  // the step has a value of it, so a plan may name it
  for (const ValueIndex v : step.values.ids()) {
    const Value& value = step.values[v];
    valued[value.storage] = true;
    if (value.overwritten_by == kNone) ends[value.storage].first = v;
    if (value.maker == kNone) ends[value.storage].second = v;
  }
  for (const StorageIndex s : step.storages.ids()) {
    const StorageIndex next = step.in_next_step(s);
    if (valued[s] && next != kNone) sites.carried.emplace_back(ends[s].first, ends[next].second);
  }
  return sites;
}

void write_plan(const PlanFile& file, std::ostream& out) {
  const Plan& plan = file.plan;
  Writer writer(out);
  writer.field("format", kPlanFormat);
  writer.field("version", kPlanVersion);
  writer.field("outcome", word_of(plan.outcome));
  writer.field("memory_bytes", file.memory > Bytes{} ? Json(file.memory.count) : Json(nullptr));
  writer.field("budget_bytes", plan.budget.count);
  writer.field("peak_bytes", plan.peak.count);
  writer.field("plain_peak_bytes", plan.plain_peak.count);
  writer.field("step_seconds", plan.step.count);
  writer.field("overhead_seconds", plan.overhead.count);
  writer.field("lower_bound_seconds", plan.bound ? Json(plan.bound->count) : Json(nullptr));
  writer.field("least_budget_bytes", plan.least.count);
  writer.field("least_budget_set_by", plan.least_set_by);
  writer.field("device", file.device);
  writer.field("torch", file.torch);
  writer.field("command", file.command);
  writer.field("seed", file.seed);
  writer.list("levers", plan.levers, [](const LeverUse& use) { return of(use); });
  writer.field("values", values_named(file));
  writer.list("ops", file.sites.ops, [](const Sites::Op& op) { return of(op); });
  Json carried = Json::array();
  for (const auto& pair : file.sites.carried) carried.push_back({pair.first.value, pair.second.value});
  writer.field("carried", carried);
  writer.list("schedule", plan.schedule.actions, [](const Action& action) { return of(action); });
  writer.field("away", numbers(plan.schedule.away));
  writer.end();
}

}  // namespace ullage::plan
