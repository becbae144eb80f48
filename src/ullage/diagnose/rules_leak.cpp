// SPDX-License-Identifier: Apache-2.0

// Causes: memory that grows from step to step.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

bool in_evaluation(const History& history, const trace::Growth& growth) {
  return growth.stack.value < history.meanings.size() &&
         history.meanings[growth.stack.value].phase == trace::Phase::Evaluation;
}

Bytes total_growth(const History& history, bool evaluation) {
  Bytes total;
  for (const trace::Growth& growth : history.growth) {
    if (in_evaluation(history, growth) == evaluation) total = sum(total, growth.total).value_or(total);
  }
  return total;
}

std::optional<Finding> grows(const History& history, bool evaluation) {
  const Bytes total = total_growth(history, evaluation);
  const double part = share(total, history.moment.live);
  if (total < 1_MiB || part < 0.01) return std::nullopt;
  std::vector<std::string> why;
  std::uint64_t most_steps = 0;
  for (const trace::Growth& growth : history.growth) {
    if (in_evaluation(history, growth) != evaluation) continue;
    most_steps = std::max(most_steps, growth.steps);
    if (why.size() == 3) continue;
    why.push_back(fmt::format("{} more in each step, in {} of {} steps, {} by now: {}", to_string(growth.per_step),
                              growth.steps, growth.of_steps, to_string(growth.total), growth.name));
  }
  const double sure = part >= 0.3 ? 0.9 : part >= 0.1 ? 0.75 : 0.4;
  return Finding{most_steps >= 4 ? sure : sure * 0.7, std::move(why)};
}

std::optional<Finding> leak_across_steps(const Evidence& evidence) {
  if (evidence.history) return grows(*evidence.history, false);
  if (evidence.message && evidence.message->form == "webgpu-invalid") {
    return Finding{0.35, {"a buffer of WebGPU lives until the program destroys it: a later one is then invalid"}};
  }
  if (evidence.message && evidence.message->form == "plain-growth") {
    return Finding{0.5, {"the text says that memory grows and is not given back"}};
  }
  const bool on_device = evidence.told_by_pool() || evidence.told_by(trace::Teller::Mps);
  if (on_device && evidence.signs.has(Sign::DeepCopy)) {
    return Finding{0.35,
                   {"it failed in a copy of a whole module or state: " + evidence.signs.where(Sign::DeepCopy),
                    "each copy that is kept costs as much as the first"}};
  }
  if (evidence.message && evidence.signs.has(Sign::Growing) && !evidence.is_on_chip()) {
    return Finding{0.35, {"the text says that memory grows: " + evidence.signs.where(Sign::Growing)}};
  }
  if (!evidence.message || evidence.message->requested.value_or(1_B) == Bytes{}) return std::nullopt;
  if (!evidence.told_by_pool() && !evidence.told_by(trace::Teller::CudaDriver)) return std::nullopt;
  if (!evidence.signs.has(Sign::LaterStep) || evidence.signs.has(Sign::Evaluation)) return std::nullopt;
  if (evidence.signs.has(Sign::RetainGraph)) {
    return Finding{0.45,
                   {"a graph is kept: " + evidence.signs.where(Sign::RetainGraph),
                    "many steps had passed before it failed: " + evidence.signs.where(Sign::LaterStep)}};
  }
  return Finding{0.3,
                 {"many steps of the same kind had passed before it failed: " + evidence.signs.where(Sign::LaterStep)}};
}

std::optional<Finding> outputs_kept(const Evidence& evidence) {
  if (evidence.history) return grows(*evidence.history, true);
  if (evidence.signs.has(Sign::Gathering)) {
    return Finding{0.7,
                   {"predictions of the whole evaluation are put together: " + evidence.signs.where(Sign::Gathering)}};
  }
  const bool host = evidence.told_by(trace::Teller::Cpu) || evidence.told_by(trace::Teller::KernelKill);
  if (!host && !evidence.told_by_pool()) return std::nullopt;
  if (!evidence.signs.has(Sign::Evaluation)) return std::nullopt;
  // On the device a graph that is kept fails with the same words. The Trainer of transformers keeps none when it
  // evaluates.
  const bool no_graph = evidence.spoken_by(Tool::Transformers);
  return Finding{no_graph ? 0.45
                 : host   ? 0.4
                          : 0.25,
                 {"it failed in an evaluation, where predictions are often kept to its end: " +
                  evidence.signs.where(Sign::Evaluation)}};
}

// Finds a list, a cache or a replay buffer of the program's own: one line has made many tensors, and they all stay.
// This rule needs no steps, so it works where growth from step to step cannot be seen.
std::optional<Finding> many_kept(const Evidence& evidence) {
  if (!evidence.history || !evidence.history->has_history) return std::nullopt;
  const History& history = *evidence.history;
  constexpr std::uint64_t kMany = 100;
  for (const trace::Owner& owner : history.owners) {
    using trace::Category;
    const bool open = owner.category == Category::Unattributed || owner.category == Category::Inputs ||
                      owner.category == Category::Temporaries;
    const double part = share(owner.bytes, history.moment.live);
    if (!open || owner.storages < kMany || part < 0.15 || owner.stack == trace::StackId{}) continue;
    return Finding{
        part >= 0.4 ? 0.55 : 0.4,
        {fmt::format("{} tensors of together {} ({:.0f} % of what is live) are from one line, and all are alive: "
                     "{}",
                     owner.storages, to_string(owner.bytes), 100 * part, owner.name)}};
  }
  return std::nullopt;
}

constexpr std::array kLeakRules = {
    CauseRule{"leak_across_steps", "Something is kept from every step, and grows", &leak_across_steps},
    CauseRule{"many_kept", "One line keeps many tensors: a list, a cache or a buffer of the program's own", &many_kept},
    CauseRule{"outputs_kept", "An evaluation keeps its outputs", &outputs_kept},
};

}  // namespace

std::span<const CauseRule> leak_rules() { return kLeakRules; }

}  // namespace ullage::diagnose
