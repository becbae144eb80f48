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
                               "chunked_loss",        "less_data"};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

bool is_of_the_pool(std::string_view id) { return id == "expandable_segments" || id == "max_split_size_mb"; }

// Returns whether the remedy is of use to the program that the message comes from.
bool is_for_speaker(std::string_view id, const Evidence& evidence) {
  if (!serves(evidence.speaker.tool)) return true;
  return !is_of_training(id) && (!is_of_the_pool(id) || evidence.told_by_pool());
}

// Returns whether the remedy lowers what a backward pass or an optimizer holds.
bool is_of_backward(std::string_view id) {
  constexpr std::array kIds = {"gradient_checkpointing", "eight_bit_optimizer", "plain_optimizer", "foreach_false",
                               "bucket_views"};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

// Returns whether the remedy lowers what a step computes. It is of no use while the weights are still being moved to
// the device.
bool is_of_a_step(std::string_view id) {
  constexpr std::array kIds = {"smaller_batch", "gradient_checkpointing", "half_precision", "smaller_input", "no_grad"};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

// Returns whether the text says that the program does already what the remedy proposes.
bool is_done(std::string_view id, const Signs& signs) {
  struct Done {
    std::string_view id;
    Sign sign;
  };
  constexpr Done kDone[] = {{"smaller_batch", Sign::BatchOfOne},     {"gradient_checkpointing", Sign::Checkpoints},
                            {"half_precision", Sign::HalfPrecision}, {"half_precision_weights", Sign::HalfPrecision},
                            {"eight_bit_optimizer", Sign::EightBit}, {"no_grad", Sign::NoGrad}};
  return std::ranges::any_of(kDone, [&](const Done& done) { return done.id == id && signs.has(done.sign); });
}

// Returns whether the remedy can change anything in the program that the message comes from. True for a recording: it
// shows who holds the bytes, so each remedy's own function decides.
bool is_for_program(std::string_view id, const Evidence& evidence) {
  if (!evidence.message) return true;
  const bool evaluates = evidence.signs.has(Sign::Evaluation) && !evidence.signs.has(Sign::Backward);
  if ((only_infers(evidence) || evaluates) && is_of_backward(id)) return false;
  if (only_infers(evidence) && id == "half_precision") return false;  // half_precision_weights saves more there
  if (moves_weights(evidence) && is_of_a_step(id)) return false;
  return !is_done(id, evidence.signs);
}

// A tool's advice that says what general remedies say too. The tool's words are the better ones.
struct StandsFor {
  std::string_view advice;
  std::array<std::string_view, 3> remedies;  // ids; entries that are not needed are empty
};
constexpr StandsFor kStandsFor[] = {
    {"trainer_batch", {"smaller_batch"}},
    {"trainer_lean", {"gradient_checkpointing", "half_precision"}},
    {"trl_loss", {"smaller_batch", "gradient_checkpointing"}},
    {"sdtrain_lean", {"smaller_batch", "gradient_checkpointing", "half_precision"}},
    {"deepspeed_stage", {"smaller_batch", "gradient_checkpointing"}},
    {"verl_micro_batch", {"smaller_batch"}},
    {"verl_offload", {"gradient_checkpointing"}},
    {"fsdp_offload", {"smaller_batch", "gradient_checkpointing"}},
    {"ddp_views", {"smaller_batch", "bucket_views"}},
    {"kernel_fewer", {"fewer_workers"}},
    {"kernel_room", {"more_host_memory"}},
    {"python_room", {"more_host_memory"}},
    {"python_parts", {"less_data"}},
    {"docker_limit", {"more_host_memory"}},
    {"slurm_mem", {"more_host_memory"}},
    {"kubernetes_limit", {"more_host_memory"}},
    {"hosting_plan", {"more_host_memory"}},
    {"notebook_runtime", {"more_host_memory", "less_data"}},
    {"ddp_workers", {"fewer_workers"}},
    {"trainer_host", {"fewer_workers"}},
    {"webui_smaller", {"smaller_input", "smaller_model"}},
    {"comfyui_smaller", {"smaller_input", "smaller_model"}},
};

// Removes the general remedies for which a tool's advice stands.
void join(std::vector<Remedy>& remedies) {
  std::erase_if(remedies, [&](const Remedy& remedy) {
    return std::ranges::any_of(kStandsFor, [&](const StandsFor& each) {
      return std::ranges::find(each.remedies, remedy.id) != each.remedies.end() && has(remedies, each.advice);
    });
  });
}

// Returns whether a message's request alone is larger than all that is live, and than what is free. Then what lowers
// the live bytes saves less than what makes the request smaller.
bool request_is_most(const Evidence& evidence) {
  const Facts& facts = evidence.facts;
  const std::optional<Bytes> live = facts.allocated ? facts.allocated : difference(facts.capacity, facts.free);
  if (!evidence.message || !facts.requested || !live || *live == Bytes{}) return false;
  return *facts.requested > *live && *facts.requested > facts.free.value_or(Bytes{});
}

bool makes_the_request_smaller(std::string_view id) {
  constexpr std::array kIds = {"smaller_batch", "smaller_input",  "split_request",          "chunked_loss",
                               "less_cache",    "half_precision", "half_precision_weights", "fused_attention"};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

void add_tool_advice(const Evidence& evidence, const Cause& cause, std::vector<Remedy>& remedies) {
  constexpr std::size_t kMost = 5;  // for one cause
  std::size_t added = 0;
  // Advice that names this cause comes first, so that general advice does not push it out.
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
      if (!is_for_speaker(rule.id, evidence) || !is_for_program(rule.id, evidence)) continue;
      std::optional<Remedy> remedy = rule.rule({evidence, cause});
      if (!remedy) continue;
      remedy->id = std::string(rule.id);
      if (remedy->saves == Bytes{}) remedy->saves.reset();
      if (!remedy->saves) remedy->basis = Basis::Known;
      remedies.push_back(std::move(*remedy));
    }
  }
  join(remedies);
  if (request_is_most(evidence)) {
    const auto tool = [](std::string_view id) {
      const auto tables = tool_advice();
      return std::ranges::any_of(tables, [&](std::span<const ToolAdvice> table) {
        return std::ranges::find(table, id, &ToolAdvice::id) != table.end();
      });
    };
    std::ranges::stable_partition(
        remedies, [&](const Remedy& remedy) { return tool(remedy.id) || makes_the_request_smaller(remedy.id); });
  }
  // Cuts before sorting, so that the remedies for the most probable causes stay.
  if (remedies.size() > kMostRemedies) remedies.resize(kMostRemedies);
  std::stable_sort(remedies.begin(), remedies.end(), [](const Remedy& a, const Remedy& b) {
    return a.saves.has_value() && (!b.saves.has_value() || *a.saves > *b.saves);
  });
  return remedies;
}

}  // namespace ullage::diagnose
