// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/file/plan_file_checks.h"

#include "ullage/plan/file/plan_file_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ullage::plan {
namespace {

// Which op makes a value. Values that no op makes are missing.
using Makers = std::map<ValueIndex, OpIndex>;

std::optional<Misfit> misfit_of(const Plan& plan) {
  const bool planned = plan.outcome == Plan::Outcome::Planned;
  if (!planned && !(plan.schedule == Schedule{})) {
    return Misfit{"schedule", fmt::format("has actions, but the outcome is '{}'", word_of(plan.outcome))};
  }
  if (planned && plan.peak > plan.budget) {
    return Misfit{"peak_bytes", fmt::format("is {}, the budget is {}", plan.peak.count, plan.budget.count)};
  }
  if (plan.outcome == Plan::Outcome::Fits && plan.plain_peak > plan.budget) {
    return Misfit{"plain_peak_bytes",
                  fmt::format("is {}, the budget is {}: it does not fit", plan.plain_peak.count, plan.budget.count)};
  }
  return std::nullopt;
}

// Checks that no value is made twice, and that a value which an op makes is not read before. A batch norm's recompute
// may also read what the op itself makes (mean and deviation). Checks too that no op that overwrites has
// batch_norm_reads.
std::optional<Misfit> misfit_of(const Sites& sites, Makers& makers) {
  for (const OpIndex i : sites.ops.ids()) {
    for (const ValueIndex value : sites.ops[i].makes) {
      const auto [at, first] = makers.emplace(value, i);
      if (first) continue;
      return Misfit{fmt::format("ops[{}].makes", i.value),
                    fmt::format("has value {}, which op {} makes", value.value, at->second.value)};
    }
  }
  for (const OpIndex i : sites.ops.ids()) {
    const auto later = [&](ValueIndex value, OpIndex end) {
      const auto made = makers.find(value);
      return made != makers.end() && made->second >= end;
    };
    for (const ValueIndex value : sites.ops[i].reads) {
      if (later(value, i)) {
        return Misfit{fmt::format("ops[{}].reads", i.value),
                      fmt::format("has value {}, which is not made yet", value.value)};
      }
    }
    if (sites.ops[i].overwrites > 0 && !sites.ops[i].batch_norm_reads.empty()) {
      return Misfit{fmt::format("ops[{}].batch_norm_reads", i.value), "is of an op that overwrites"};
    }
    for (const ValueIndex value : sites.ops[i].batch_norm_reads) {
      if (later(value, i.next())) {
        return Misfit{fmt::format("ops[{}].batch_norm_reads", i.value),
                      fmt::format("has value {}, which is not made yet", value.value)};
      }
    }
  }
  return std::nullopt;
}

// Checks that no two pairs of `carried` have the same first value or the same second value. (The first value of one may
// be the second of another.) Checks too that `away` names only values of `carried`.
std::optional<Misfit> misfit_of_carried(const PlanFile& file) {
  std::set<ValueIndex> named, found;
  for (std::size_t i = 0; i < file.sites.carried.size(); ++i) {
    const auto& pair = file.sites.carried[i];
    if (!named.insert(pair.first).second || !found.insert(pair.second).second) {
      return Misfit{fmt::format("carried[{}]", i), "has a value of another pair"};
    }
  }
  const std::vector<ValueIndex>& away = file.plan.schedule.away;
  for (std::size_t i = 0; i < away.size(); ++i) {
    if (named.contains(away[i]) || found.contains(away[i])) continue;
    return Misfit{fmt::format("away[{}]", i),
                  fmt::format("is {}, which is not carried from step to step", away[i].value)};
  }
  return std::nullopt;
}

std::optional<Misfit> misfit_of_recompute(const Action& action, const Sites& sites, const std::string& place) {
  const Sites::Op& op = sites.ops[action.op];
  if (action.op > action.at || (action.op == action.at && !action.after)) {
    return Misfit{place + ".op", fmt::format("is {}, which has not run by then", action.op.value)};
  }
  for (const ValueIndex value : action.keeps) {
    if (std::find(op.makes.begin(), op.makes.end(), value) == op.makes.end()) {
      return Misfit{place + ".keeps",
                    fmt::format("has value {}, which op {} does not make", value.value, action.op.value)};
    }
  }
  if (action.what != Action::What::BatchNorm) return std::nullopt;
  if (op.batch_norm_reads.empty()) {
    return Misfit{place + ".op", fmt::format("is {}, which is not a batch norm", action.op.value)};
  }
  if (action.keeps.size() != 1 || action.keeps.front() != op.makes.front()) {
    return Misfit{place + ".keeps", "is not the first value that the op makes"};
  }
  return std::nullopt;
}

std::optional<Misfit> misfit_of(const Schedule& schedule, const Sites& sites) {
  for (std::size_t i = 0; i < schedule.actions.size(); ++i) {
    const Action& action = schedule.actions[i];
    const std::string place = fmt::format("schedule[{}]", i);
    if (i > 0) {
      const Action& before = schedule.actions[i - 1];
      if (std::tie(action.at, action.after) < std::tie(before.at, before.after)) {
        return Misfit{place, fmt::format("is at op {}, the one before it at op {}", action.at.value, before.at.value)};
      }
    }
    if (!runs_an_op(action.what)) continue;
    if (auto wrong = misfit_of_recompute(action, sites, place)) return wrong;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t values_named(const PlanFile& file) {
  std::uint64_t end = 0;
  const auto name = [&](ValueIndex value) { end = std::max(end, value.value + 1); };
  for (const Sites::Op& op : file.sites.ops) {
    for (const auto* values : {&op.reads, &op.makes, &op.batch_norm_reads}) std::ranges::for_each(*values, name);
  }
  for (const auto& pair : file.sites.carried) name(pair.first), name(pair.second);
  for (const Action& action : file.plan.schedule.actions) {
    if (!runs_an_op(action.what)) name(action.value);
  }
  std::ranges::for_each(file.plan.schedule.away, name);
  return end;
}

std::optional<Misfit> misfit(const PlanFile& file) {
  if (auto wrong = misfit_of(file.plan)) return wrong;
  // The number must be that of the values named, so that a large one alone cannot make a run allocate much memory.
  if (file.sites.values != values_named(file)) {
    return Misfit{"values",
                  fmt::format("is {}, the values that are named end before {}", file.sites.values, values_named(file))};
  }
  Makers makers;
  if (auto wrong = misfit_of(file.sites, makers)) return wrong;
  if (auto wrong = misfit_of_carried(file)) return wrong;
  return misfit_of(file.plan.schedule, file.sites);
}

}  // namespace ullage::plan
