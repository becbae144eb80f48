// SPDX-License-Identifier: Apache-2.0

// The rules for what a program holds too long, or holds twice. It may be a graph kept in validation, optimizer state,
// logits, attention matrices, or keys and values of a generation. Or a checkpoint stays beside the weights that were
// loaded from it. Edit a threshold or a sentence for the user in the rule's function. A new rule is a row of
// kStepRules, described in docs/explain.md.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

using trace::Category;

// Returns the confidence of a cause that holds this share of the live bytes.
double by_share(double part) { return part >= 0.5 ? 0.8 : part >= 0.3 ? 0.6 : part >= 0.15 ? 0.4 : 0.2; }

// Returns the confidence of a finding that rests on names in a stack: `sure`, or half of it if the request alone is
// larger than the device. Then the request explains the failure.
double hint(const Evidence& evidence, double sure) {
  const Facts& facts = evidence.facts;
  return facts.requested && facts.capacity && *facts.requested > *facts.capacity ? sure * 0.5 : sure;
}

// Without a graph nearly all that an evaluation makes is freed at once; with one it stays until the evaluation ends.
std::optional<Finding> graph_in_history(const History& history) {
  const Kind& kept = history.roles.kind(Role::Evaluation);
  const double part = share(kept.bytes, history.moment.live);
  const double alive = share(kept.bytes, history.roles.made_in_evaluation);
  if (!history.has_history || part < 0.1 || kept.storages < 8 || alive < 0.2) return std::nullopt;
  return Finding{
      by_share(part),
      {fmt::format("{} of {} live are activations of an evaluation ({} storages), the largest from {}",
                   to_string(kept.bytes), to_string(history.moment.live), kept.storages, kept.where),
       fmt::format("{:.0f} % of all that the evaluation had made up to then were still alive", 100 * alive)}};
}

// Without a graph, what one line makes for a layer dies before the next layer's. So if many storages of one line are
// alive at once, the graph holds them. In training such a graph is needed. Then this rule finds nothing, and the rule
// `activations` (rules_composition.cpp) reports the bytes.
std::optional<Finding> graph_kept(const Evidence& evidence) {
  if (!evidence.history || !evidence.history->has_history || evidence.history->roles.trains) return std::nullopt;
  const History& history = *evidence.history;
  constexpr std::uint64_t kLayers = 8;
  Bytes kept;
  const trace::Owner* most = nullptr;
  for (const trace::Owner& owner : history.owners) {
    if (owner.category != Category::Activations || owner.storages < kLayers) continue;
    if (owner.name.find("cache") != owner.name.npos) continue;  // keys and values are kept on purpose
    if (most == nullptr) most = &owner;
    kept += owner.bytes;
  }
  const double part = share(kept, history.moment.live);
  if (most == nullptr || part < 0.2 || kept < 1_MiB) return std::nullopt;
  return Finding{
      0.5,
      {fmt::format("{} of {} live are activations of source lines that made {} or more each, all still alive",
                   to_string(kept), to_string(history.moment.live), kLayers),
       fmt::format("the largest: {} in {} storages from {}", to_string(most->bytes), most->storages, most->name),
       "no backward pass was recorded: either none comes and no_grad is missing, or it comes later"}};
}

std::optional<Finding> validation_with_graph(const Evidence& evidence) {
  if (evidence.history) return graph_in_history(*evidence.history);
  if (!evidence.message || !evidence.signs.has(Sign::Evaluation) || evidence.signs.has(Sign::Backward))
    return std::nullopt;
  if (!evidence.told_by_pool() && !evidence.told_by(trace::Teller::CudaDriver)) return std::nullopt;
  if (evidence.spoken_by(Tool::Transformers)) return std::nullopt;  // its evaluation runs under no_grad
  std::vector<std::string> why{
      "it failed in an evaluation: " + evidence.signs.where(Sign::Evaluation),
      "without no_grad the forward pass keeps all it computed; model.eval() does not change that"};
  return Finding{hint(evidence, evidence.signs.has(Sign::LaterStep) ? 0.5 : 0.45), std::move(why)};
}

std::optional<Finding> optimizer_state(const Evidence& evidence) {
  if (evidence.history) {
    const Bytes state = evidence.history->of(Category::OptimizerState);
    const double part = share(state, evidence.history->moment.live);
    if (part < 0.15) return std::nullopt;
    std::vector<std::string> why{fmt::format("{} of {} live are optimizer state ({:.0f} %)", to_string(state),
                                             to_string(evidence.history->moment.live), 100 * part)};
    if (evidence.history->failed() && evidence.history->phase == trace::Phase::Optimizer) {
      const std::string& frame = evidence.history->signs.where(Sign::OptimizerStep);
      const std::string where = evidence.history->told ? op_in_words(evidence.history->told->place) : frame;
      why.push_back("it failed inside the optimizer's step: " + where);
      return Finding{std::max(by_share(part), 0.7), std::move(why)};
    }
    return Finding{by_share(part), std::move(why)};
  }
  if (!evidence.message || !evidence.signs.has(Sign::OptimizerStep)) return std::nullopt;
  std::vector<std::string> why{"it failed in the optimizer's step: " + evidence.signs.where(Sign::OptimizerStep)};
  const bool first = evidence.signs.has(Sign::FirstStep);
  const bool born = evidence.signs.where(Sign::OptimizerStep).find("_init_group") != std::string::npos;
  if (first) why.push_back("in the first step, where Adam makes its state: " + evidence.signs.where(Sign::FirstStep));
  return Finding{hint(evidence, first || born                         ? 0.75
                                : evidence.signs.has(Sign::LaterStep) ? 0.3
                                                                      : 0.5),
                 std::move(why)};
}

std::optional<Finding> optimizer_temporaries(const Evidence& evidence) {
  if (evidence.history) {
    const Kind& lists = evidence.history->roles.kind(Role::Foreach);
    const double part = share(lists.bytes, evidence.history->moment.live);
    if (part < 0.05) return std::nullopt;
    return Finding{by_share(part),
                   {fmt::format("{} of {} live are temporaries of the optimizer's step, from {}",
                                to_string(lists.bytes), to_string(evidence.history->moment.live), lists.where)}};
  }
  if (!evidence.message || !evidence.signs.has(Sign::OptimizerStep)) return std::nullopt;
  const bool multi = evidence.signs.where(Sign::OptimizerStep).find("multi_tensor") != std::string::npos ||
                     evidence.signs.where(Sign::OptimizerStep).find("foreach") != std::string::npos;
  return Finding{hint(evidence, multi ? 0.6 : 0.2),
                 {"by default torch's optimizers make lists of temporaries as large as all parameters (foreach): " +
                  evidence.signs.where(Sign::OptimizerStep)}};
}

std::optional<Finding> from_kind(const Evidence& evidence, const Kind& kind, const char* what) {
  const double part = share(kind.bytes, evidence.history->moment.live);
  if (part < 0.15) return std::nullopt;
  return Finding{
      by_share(part),
      {fmt::format("{} of {} live ({:.0f} %) are {} ({} storages), the largest from {}", to_string(kind.bytes),
                   to_string(evidence.history->moment.live), 100 * part, what, kind.storages, kind.where)}};
}

std::optional<Finding> logits(const Evidence& evidence) {
  if (evidence.history)
    return from_kind(evidence, evidence.history->roles.kind(Role::Logits), "logits and what the loss makes of them");
  if (!evidence.message || !evidence.signs.has(Sign::Loss) || evidence.signs.has(Sign::OptimizerStep))
    return std::nullopt;
  const bool large = evidence.facts.requested.value_or(Bytes{}) >= 512_MiB;
  std::vector<std::string> why{"it failed in the loss or the head: " + evidence.signs.where(Sign::Loss)};
  if (large) {
    why.push_back(fmt::format("{} in one request: batch x sequence x vocabulary has that shape",
                              to_string(*evidence.facts.requested)));
  }
  return Finding{hint(evidence, large ? 0.7 : 0.3), std::move(why)};
}

std::optional<Finding> attention_matrix(const Evidence& evidence) {
  if (evidence.history)
    return from_kind(evidence, evidence.history->roles.kind(Role::AttentionScores), "attention scores");
  if (!evidence.message || !evidence.signs.has(Sign::Attention) || evidence.signs.has(Sign::OptimizerStep)) {
    return std::nullopt;
  }
  const bool large = evidence.facts.requested.value_or(Bytes{}) >= 512_MiB;
  std::vector<std::string> why{"it failed in attention: " + evidence.signs.where(Sign::Attention)};
  if (large) {
    why.push_back(
        fmt::format("{} in one request: scores of batch x heads x length x length grow with the square of the "
                    "length",
                    to_string(*evidence.facts.requested)));
  }
  return Finding{hint(evidence, large ? 0.7 : 0.25), std::move(why)};
}

std::optional<Finding> checkpoint_loaded_twice(const Evidence& evidence) {
  if (evidence.history) {
    const Kind& again = evidence.history->roles.kind(Role::LoadedAgain);
    const double part = share(again.bytes, evidence.history->moment.live);
    if (part < 0.05 || again.bytes < 1_MiB) return std::nullopt;
    return Finding{
        part >= 0.25 ? 0.75 : 0.5,
        {fmt::format("{} read from a file ({} tensors) have twins of the same sizes among the parameters: {}",
                     to_string(again.bytes), again.storages, again.where)}};
  }
  if (!evidence.message || !evidence.signs.has(Sign::Loading)) return std::nullopt;
  if (evidence.told_by(trace::Teller::Cpu)) return std::nullopt;
  const std::string& where = evidence.signs.where(Sign::Loading);
  const bool in_stack = where.find(':') != std::string::npos && !evidence.message->traceback.empty();
  // While the file is still being read, no copy of it can have been left over yet.
  const bool reading = evidence.signs.has(Sign::Deserializing);
  return Finding{hint(evidence, reading    ? 0.25
                                : in_stack ? 0.5
                                           : 0.35),
                 {"a checkpoint was loaded, and what was read may still be alive beside the weights: " + where}};
}

// torch.load puts each tensor back on the device from which it was saved, unless map_location names another.
std::optional<Finding> loaded_to_device(const Evidence& evidence) {
  if (!evidence.message || !evidence.signs.has(Sign::Deserializing)) return std::nullopt;
  if (!evidence.told_by_pool() && !evidence.told_by(trace::Teller::CudaDriver)) return std::nullopt;
  return Finding{
      hint(evidence, 0.55),
      {"it failed while a file's tensors were made on the device: " + evidence.signs.where(Sign::Deserializing),
       "without map_location=\"cpu\" they are read to the device that the file names, beside the model's own "
       "weights; every rank reads them to that same device"}};
}

std::optional<Finding> kv_cache(const Evidence& evidence) {
  if (evidence.history)
    return from_kind(evidence, evidence.history->roles.kind(Role::Cache), "keys and values of a generation");
  if (!evidence.message) return std::nullopt;
  const std::string& form = evidence.message->form;
  if (form.starts_with("vllm-mamba") || form.starts_with("vllm-cache")) {
    return Finding{0.45,
                   {"the share of memory that the engine may take leaves too little for the KV cache of the requests "
                    "that it was asked to serve"}};
  }
  if (evidence.signs.has(Sign::CacheBuffer)) {
    return Finding{0.6,
                   {"the buffer for the keys and values of the whole context was refused: " +
                    evidence.signs.where(Sign::CacheBuffer)}};
  }
  if (!evidence.signs.has(Sign::Generation)) return std::nullopt;
  return Finding{hint(evidence, 0.4),
                 {"it failed while generating: keys and values are kept for every token of every sequence: " +
                  evidence.signs.where(Sign::Generation)}};
}

// A rank that gathers the whole state dict of a sharded model needs room for all of it. Depending on the program, every
// rank gathers it or only the first.
std::optional<Finding> full_state_gathered(const Evidence& evidence) {
  if (!evidence.message) return std::nullopt;
  const bool of_host = evidence.told_by(trace::Teller::KernelKill) || evidence.told_by(trace::Teller::Cpu);
  if (!evidence.signs.has(Sign::FullState)) {
    if (!evidence.signs.has(Sign::Saving) || !evidence.spoken_by(Tool::Fsdp)) return std::nullopt;
    return Finding{of_host ? 0.3 : 0.5,
                   {"a sharded model was being saved: " + evidence.signs.where(Sign::Saving),
                    "FSDP puts the whole state together for that, unless its state_dict_type says otherwise"}};
  }
  return Finding{of_host ? 0.4 : 0.6,
                 {"parts of all ranks were being put together: " + evidence.signs.where(Sign::FullState),
                  "one rank then needs room for the whole, beside its own part"}};
}

constexpr std::array kStepRules = {
    CauseRule{"validation_with_graph", "An evaluation runs without no_grad and keeps its graph",
              &validation_with_graph},
    CauseRule{"graph_kept", "A forward pass keeps its graph, and no backward pass was seen", &graph_kept},
    CauseRule{"optimizer_state", "The optimizer's state, born in the first step", &optimizer_state},
    CauseRule{"optimizer_temporaries", "Temporaries of a foreach optimizer", &optimizer_temporaries},
    CauseRule{"logits", "Logits of the whole vocabulary", &logits},
    CauseRule{"attention_matrix", "Attention scores stand in memory as a whole matrix", &attention_matrix},
    CauseRule{"checkpoint_loaded_twice", "A loaded checkpoint stays alive beside the weights",
              &checkpoint_loaded_twice},
    CauseRule{"loaded_to_device", "A file's tensors are read onto the device", &loaded_to_device},
    CauseRule{"full_state_gathered", "A sharded state is gathered whole", &full_state_gathered},
    CauseRule{"kv_cache", "Keys and values kept while generating", &kv_cache},
};

}  // namespace

std::span<const CauseRule> step_rules() { return kStepRules; }

}  // namespace ullage::diagnose
