// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/remedies.h"

#include "ullage/diagnose/take_words.h"

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

constexpr std::size_t kMostRemedies = 8;
constexpr double kWorthAdvice = 0.1;  // a less probable cause gets remedies only if there are none yet

bool is_for(const RemedyRule& rule, const Cause& cause) {
  return std::find(rule.causes.begin(), rule.causes.end(), cause.id) != rule.causes.end();
}

bool is_for(const ToolAdvice& advice, const Cause& cause) {
  if (!advice.causes[0].empty()) return std::ranges::find(advice.causes, cause.id) != advice.causes.end();
  if (cause.id == "not_memory") return advice.tool == Tool::Triton;
  const bool host = is_of_host(cause.id);
  return advice.what == ToolAdvice::For::Any || (advice.what == ToolAdvice::For::Host) == host;
}

bool has(const std::vector<Remedy>& remedies, std::string_view id) {
  return std::any_of(remedies.begin(), remedies.end(), [&](const Remedy& remedy) { return remedy.id == id; });
}

// Returns whether the remedy needs code or a library that only a Python program has.
bool needs_python(std::string_view id) {
  constexpr std::array kIds = {
      "gradient_checkpointing", "half_precision",  "eight_bit_optimizer", "foreach_false", "chunked_loss",
      "half_precision_weights", "drop_checkpoint", "warm_up_compiler",    "bucket_views",  "less_cache",
      "fused_attention",        "load_to_host"};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

// Returns whether the remedy changes a training script. A program that serves a model has no such code.
bool is_of_training(std::string_view id) {
  constexpr std::array kIds = {"smaller_batch",       "gradient_checkpointing",
                               "half_precision",      "half_precision_weights",
                               "eight_bit_optimizer", "plain_optimizer",
                               "foreach_false",       "fewer_workers",
                               "no_pinning",          "ullage_run",
                               "chunked_loss"};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

bool is_of_the_pool(std::string_view id) { return id == "expandable_segments" || id == "max_split_size_mb"; }

// Returns whether the remedy is of use to the program that the message comes from.
bool is_for_speaker(std::string_view id, const Evidence& evidence) {
  if (!serves(evidence.speaker.tool)) return true;
  return !is_of_training(id) && (!is_of_the_pool(id) || evidence.told_by_pool());
}

void add_tool_advice(const Evidence& evidence, const Cause& cause, std::vector<Remedy>& remedies) {
  constexpr std::size_t kMost = 5;  // advice of one tool for one cause
  std::size_t added = 0;
  // What is for this cause alone comes first, so that general advice does not push it out.
  for (const bool for_this_alone : {true, false}) {
    for (const std::span<const ToolAdvice> family : tool_advice()) {
      for (const ToolAdvice& one : family) {
        if (one.causes[0].empty() == for_this_alone || !evidence.spoken_by(one.tool) || !is_for(one, cause)) continue;
        if (has(remedies, one.id) || added == kMost) continue;
        ++added;
        Remedy remedy = known(std::string(one.action), std::string(one.why));
        remedy.id = std::string(one.id);
        remedies.push_back(std::move(remedy));
      }
    }
  }
}

bool without_python(const Evidence& evidence) {
  return evidence.history && evidence.history->file && !is_python(evidence.history->file->file);
}

}  // namespace

std::vector<RemedyRule> all_remedies() {
  std::vector<RemedyRule> all;
  for (auto family : {take_remedies(), pool_remedies(), machine_remedies(), program_remedies()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

std::vector<Remedy> remedies_of(const Evidence& evidence, const std::vector<Cause>& causes) {
  const std::vector<RemedyRule> all = all_remedies();
  std::vector<Remedy> remedies;
  for (const Cause& cause : causes) {
    if (cause.confidence < kWorthAdvice && !remedies.empty()) continue;
    if (evidence.message && cause.id != "index_error_in_disguise") {
      add_tool_advice(evidence, cause, remedies);
    }
    for (const RemedyRule& rule : all) {
      if (!is_for(rule, cause) || has(remedies, rule.id)) continue;
      if (needs_python(rule.id) && without_python(evidence)) continue;
      if (!is_for_speaker(rule.id, evidence)) continue;
      std::optional<Remedy> remedy = rule.rule({evidence, cause});
      if (!remedy) continue;
      remedy->id = std::string(rule.id);
      if (remedy->saves == Bytes{}) remedy->saves.reset();
      if (!remedy->saves) remedy->basis = Basis::Known;
      remedies.push_back(std::move(*remedy));
    }
  }
  // Cuts before sorting, so that the remedies for the most probable causes stay.
  if (remedies.size() > kMostRemedies) remedies.resize(kMostRemedies);
  std::stable_sort(remedies.begin(), remedies.end(), [](const Remedy& a, const Remedy& b) {
    return a.saves.has_value() && (!b.saves.has_value() || *a.saves > *b.saves);
  });
  return remedies;
}

}  // namespace ullage::diagnose
