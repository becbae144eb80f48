// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_plan_timeline.h"

#include "ullage/report/html/html_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace ullage::report {
namespace {

using UnorderedJson = nlohmann::json;
using What = plan::Action::What;

// Writes each number minus the one before it, which is short because neighbours are similar.
UnorderedJson differences(const Table<plan::OpIndex, Bytes>& levels) {
  UnorderedJson json = UnorderedJson::array();
  std::uint64_t last = 0;
  for (const Bytes level : levels) {
    json.push_back(static_cast<std::int64_t>(level.count - last));
    last = level.count;
  }
  return json;
}

// A list of distinct texts, and for each op the index of its text.
class Names final {
 public:
  void add(const std::string& name) {
    const auto [at, first] = index_.emplace(name, names_.size());
    if (first) names_.push_back(name);
    of_.push_back(at->second);
  }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::size_t>& of() const { return of_; }

 private:
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> names_;
  std::vector<std::size_t> of_;
};

const char* word_of(What what) {
  switch (what) {
    case What::Drop:
      return "given up";
    case What::Recompute:
      return "run again";
    case What::BatchNorm:
      return "recomputed from its statistics";
    case What::Hold:
      return "held";
    case What::Spill:
      return "spilled";
    case What::Restore:
      return "read back";
    case What::WriteAhead:
      return "written ahead";
    case What::ReadAhead:
      break;
  }
  return "read ahead";
}

std::string site_of(const plan::Action& action, const plan::Step& step) {
  if (action.what == What::Recompute || action.what == What::BatchNorm) {
    const plan::StepOp& op = step.ops[action.op];
    const plan::ValueIndex made = action.keeps.empty() ? op.makes.at(0) : action.keeps.front();
    const std::string& made_name = step.storages[step.values[made].storage].name;
    return made_name.starts_with(op.name) ? made_name : op.name + ", " + made_name;
  }
  return step.storages[step.values[action.value].storage].name;
}

UnorderedJson acts_of(const PlanReport& report) {
  UnorderedJson json = UnorderedJson::array();
  if (report.planned_levels.empty()) return json;
  for (const plan::Action& action : report.planned->plan.schedule.actions) {
    json.push_back({action.at.value, word_of(action.what), site_of(action, report.step)});
  }
  return json;
}

}  // namespace

std::string plan_timeline_json(const PlanReport& report) {
  Names phases, names;
  UnorderedJson took = UnorderedJson::array();
  for (const plan::StepOp& op : report.step.ops) {
    phases.add(std::string(trace::name(op.phase)));
    names.add(op.name);
    took.push_back(std::llround(op.took.count * 1e6));
  }
  UnorderedJson json;
  json["budget"] = report.planned ? report.planned->plan.budget.count : 0;
  json["plain"] = differences(report.plain_levels);
  json["planned"] = report.planned_levels.empty() ? UnorderedJson(nullptr) : differences(report.planned_levels);
  json["phases"] = phases.names(), json["phase"] = phases.of();
  json["names"] = names.names(), json["op"] = names.of();
  json["took"] = std::move(took);
  json["acts"] = acts_of(report);
  return in_script(json.dump(-1, ' ', true, UnorderedJson::error_handler_t::replace));
}

}  // namespace ullage::report
