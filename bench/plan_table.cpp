// SPDX-License-Identifier: Apache-2.0
// plan_table FILE.ullage [--shares 75,55,40] [--levers recompute,batch-norm,hold]... [--effort N] [--seed N]
//            [--time-points N] [--no-bound] [--no-baselines]
// Plans the typical step of a take at budgets that leave it these shares, in percent, of its activation memory: budget
// = plain peak - (1 - share) x bytes saved. Prints JSON for each share and each set of levers. It has the plan as the
// verifier found it, the bound, the results of the policies of baselines.h, and how long planning took. The output
// contains times, so it differs between runs.
#include "baselines.h"
#include "ullage/base/result.h"
#include "ullage/plan/bound/bound.h"
#include "ullage/plan/model/step_of_take.h"
#include "ullage/plan/search/planner.h"
#include "ullage/plan/verify/verifier.h"
#include "ullage/read/file/file_content.h"
#include "ullage/trace/file/trace_file.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ullage::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

struct LeverSet {
  std::string name;
  Levers levers;
};

struct Options {
  std::string file;
  std::vector<double> shares = {75, 55, 40};  // percent
  std::vector<LeverSet> levers;               // empty: one set without and one with levers that move bytes
  Ask ask;                                    // budget and levers are set per row
  std::size_t time_points = 16;
  bool bound = true;
  bool baselines = true;
};

std::vector<std::string> parts_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

LeverSet levers_called(const std::string& text) {
  Levers levers = kNoLevers;
  for (const std::string& part : parts_of(text)) {
    if (!turn_on(part, levers)) throw std::invalid_argument("no lever " + part);
  }
  return {text, levers};
}

Options options_of(std::span<char*> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word == "--no-bound") {
      options.bound = false;
    } else if (word == "--no-baselines") {
      options.baselines = false;
    } else if (!word.starts_with("--")) {
      options.file = word;
    } else {
      if (++i == words.size()) throw std::invalid_argument("no value for " + word);
      const std::string value = words[i];
      if (word == "--levers") {
        options.levers.push_back(levers_called(value));
      } else if (word == "--effort") {
        options.ask.effort = std::stoull(value);
      } else if (word == "--seed") {
        options.ask.seed = std::stoull(value);
      } else if (word == "--time-points") {
        options.time_points = std::stoull(value);
      } else if (word == "--shares") {
        options.shares.clear();
        for (const std::string& part : parts_of(value)) options.shares.push_back(std::stod(part));
      } else {
        throw std::invalid_argument("no option " + word);
      }
    }
  }
  if (options.file.empty()) throw std::invalid_argument("which recording?");
  if (options.levers.empty()) options.levers = {levers_called("recompute,batch-norm,hold"), {"all", Levers{}}};
  return options;
}

template <class T>
T taken(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

Step step_in(const std::string& path) {
  const read::FileContent content = taken(read::FileContent::open(path));
  trace::TraceFile file = taken(trace::read_trace_file(content.bytes(), path));
  if (file.takes.size() != 1) throw std::runtime_error(path + ": not one take");
  const trace::TakeMeaning meaning = trace::understand(file.takes[0]);
  return taken(typical_step(file.takes[0], meaning));
}

class Clock final {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

const char* word_for(Plan::Outcome outcome) {
  return outcome == Plan::Outcome::Fits ? "fits" : outcome == Plan::Outcome::Planned ? "plan" : "infeasible";
}

void add_plan(const Step& step, const Ask& ask, Json& row) {
  const Clock clock;
  const Plan plan = make_plan(step, ask);
  row["planning_seconds"] = clock.seconds();
  row["outcome"] = word_for(plan.outcome);
  if (plan.outcome == Plan::Outcome::Infeasible) {
    row["least_bytes"] = plan.least.count;
    row["least_set_by"] = plan.least_set_by;
    return;
  }
  const Verified verified = taken(verify(step, plan.schedule, ask.budget));
  row["overhead_seconds"] = plan.overhead.count;
  row["peak_bytes"] = verified.peak.count;
  row["resident_bytes"] = verified.resident.count;
  row["recomputed_ops"] = verified.recomputed_ops;
  row["recompute_seconds"] = verified.recomputes.count;
  row["written_bytes"] = verified.written.count;
  row["read_bytes"] = verified.read.count;
  row["uses"] = Json::object();
  for (const LeverUse& use : plan.levers) row["uses"][use.lever] = row["uses"].value(use.lever, 0) + 1;
}

void add_bound(const Step& step, const Ask& ask, std::size_t time_points, Json& row) {
  const Clock clock;
  const Result<Seconds> bound = lower_bound(step, ask, time_points);
  row["bound_seconds"] = bound ? Json(bound->count) : Json(nullptr);
  if (!bound) row["bound_message"] = bound.error().message;
  row["bound_took_seconds"] = clock.seconds();
}

void add_baselines(const Step& step, const Ask& ask, Json& row) {
  const Clock clock;
  for (const Baseline& baseline : baselines(step, ask)) {
    const bool fits = baseline.schedule.has_value();
    row["baselines"][baseline.name] =
        fits ? Json{{"overhead_seconds", baseline.overhead.count}, {"peak_bytes", baseline.peak.count}} : Json(nullptr);
    if (fits) taken(verify(step, *baseline.schedule, ask.budget));
  }
  row["baselines_took_seconds"] = clock.seconds();
}

Json facts_of(const Step& step) {
  return {{"ops", step.ops.size()},
          {"values", step.values.size()},
          {"step_seconds", step.seconds.count},
          {"seconds_in_ops", step.in_ops.count},
          {"plain_peak_bytes", step.peak.count},
          {"saved_bytes", step.saved.count},
          {"pool_overhead_bytes", step.overhead.count}};
}

Json table_of(const Options& options) {
  const Clock clock;
  const Step step = step_in(options.file);
  Json json{{"file", options.file}, {"reading_seconds", clock.seconds()}, {"step", facts_of(step)}};
  for (const double share : options.shares) {
    const double freed = (1 - share / 100) * static_cast<double>(step.saved.count);
    Ask ask = options.ask;
    ask.budget = Bytes{step.peak.count - static_cast<std::uint64_t>(std::ceil(freed))};
    for (const LeverSet& set : options.levers) {
      ask.levers = set.levers;
      Json row{{"share", share}, {"budget_bytes", ask.budget.count}, {"levers", set.name}};
      add_plan(step, ask, row);
      if (options.bound) add_bound(step, ask, options.time_points, row);
      if (options.baselines) add_baselines(step, ask, row);
      json["rows"].push_back(std::move(row));
    }
  }
  return json;
}

}  // namespace
}  // namespace ullage::plan

int main(int argc, char** argv) {
  ullage::plan::Options options;
  try {
    options = ullage::plan::options_of(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plan_table: %s\n", error.what());
    return ullage::plan::kWrongUse;
  }
  try {
    std::printf("%s\n", ullage::plan::table_of(options).dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plan_table: %s\n", error.what());
    return ullage::plan::kFailed;
  }
}
