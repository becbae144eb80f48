// SPDX-License-Identifier: Apache-2.0

// Causes: what the live bytes are made of, for when no other family finds anything more specific. A recording shows it;
// a few rules also guess it from the signs of a message.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

using trace::Category;

std::optional<Finding> made_of(const Evidence& evidence, Category category, double least) {
  if (!evidence.history) return std::nullopt;
  const History& history = *evidence.history;
  const Bytes bytes = history.of(category);
  const double part = share(bytes, history.moment.live);
  if (part < least || bytes < 1_MiB) return std::nullopt;
  std::vector<std::string> why{fmt::format("{} of {} live ({:.0f} %) are {}", to_string(bytes),
                                           to_string(history.moment.live), 100 * part, name(category))};
  for (const trace::Owner& owner : history.owners) {
    if (owner.category != category) continue;
    why.push_back(fmt::format("most of it: {}, {} in {} storage{}", owner.name, to_string(owner.bytes), owner.storages,
                              owner.storages == 1 ? "" : "s"));
    break;
  }
  return Finding{part >= 0.6 ? 0.75 : part >= 0.35 ? 0.55 : 0.35, std::move(why)};
}

// Adds the layers that keep most for the backward pass. Only a trace has them.
void say_layers(const TakeFacts& told, std::vector<std::string>& why) {
  if (told.saved_by.empty()) return;
  std::string layers;
  for (std::size_t i = 0; i < std::min<std::size_t>(told.saved_by.size(), 3); ++i) {
    const SavedBy& one = told.saved_by[i];
    layers += fmt::format("{}{}{} {}", i == 0 ? "" : ", ", one.name, line_in_words(one.line), to_string(one.bytes));
  }
  why.push_back(fmt::format("{} saved for the backward pass, most by: {}", to_string(told.saved), layers));
}

std::optional<Finding> activations(const Evidence& evidence) {
  if (evidence.history) {
    std::optional<Finding> found = made_of(evidence, Category::Activations, 0.2);
    if (found && evidence.history->told) say_layers(*evidence.history->told, found->evidence);
    if (found && evidence.history->roles.trains)
      found->evidence.push_back("the backward pass needs them: they live until it");
    return found;
  }
  if (!evidence.message || evidence.signs.has(Sign::OptimizerStep)) return std::nullopt;
  if (evidence.signs.has(Sign::Lora) && evidence.told_by_pool() && !evidence.signs.has(Sign::Loading)) {
    return Finding{0.38,
                   {"LoRA trains few weights, so activations and logits of the longest sample make the peak: " +
                    evidence.signs.where(Sign::Lora)}};
  }
  if (!evidence.signs.has(Sign::Backward)) return std::nullopt;
  return Finding{0.35,
                 {"it failed in the backward pass, while all that the forward pass kept is still alive: " +
                  evidence.signs.where(Sign::Backward)}};
}
std::optional<Finding> parameters(const Evidence& evidence) {
  if (evidence.message && evidence.told_by_pool() && moves_weights(evidence)) {
    return Finding{0.4,
                   {"it failed while a module was moved to the device, before anything was computed: " +
                    evidence.signs.where(Sign::WeightsMove)}};
  }
  return made_of(evidence, Category::Parameters, 0.3);
}
std::optional<Finding> gradients(const Evidence& evidence) { return made_of(evidence, Category::Gradients, 0.2); }
std::optional<Finding> temporaries(const Evidence& evidence) { return made_of(evidence, Category::Temporaries, 0.3); }
std::optional<Finding> workspace(const Evidence& evidence) {
  std::optional<Finding> found = made_of(evidence, Category::Workspace, 0.15);
  if (found) found->evidence.push_back("it is born and freed within one op: no pager can evict it");
  return found;
}
std::optional<Finding> library(const Evidence& evidence) { return made_of(evidence, Category::Library, 0.1); }
std::optional<Finding> weight_copies(const Evidence& evidence) {
  std::optional<Finding> found = made_of(evidence, Category::WeightCopies, 0.1);
  if (found)
    found->evidence.push_back(
        "autocast casts each fp32 weight once and keeps the copy; no smaller batch makes it less");
  return found;
}
std::optional<Finding> inputs(const Evidence& evidence) {
  if (evidence.message && evidence.signs.has(Sign::ReplayBuffer) && evidence.told_by_pool()) {
    return Finding{0.4, {"a replay buffer keeps what it was given: " + evidence.signs.where(Sign::ReplayBuffer)}};
  }
  const bool host = evidence.history && evidence.history->device_is_cpu;  // inputs belong there
  return host ? std::nullopt : made_of(evidence, Category::Inputs, 0.2);
}

// Memory of the caching allocator that nothing uses, if nothing failed. The pool keeps it for later requests.
std::optional<Finding> cached_unused(const Evidence& evidence) {
  if (!evidence.history || evidence.history->failed() || !evidence.history->layout) return std::nullopt;
  const History& history = *evidence.history;
  const PoolLayout& layout = *history.layout;
  // Without a history it is not known whether bytes that are stuck now were ever usable, so both kinds count.
  const Bytes cached = history.has_history ? layout.usable : layout.usable + layout.stuck;
  const double part = share(cached, layout.reserved);
  if (part < 0.2 || cached < 64_MiB) return std::nullopt;
  std::vector<std::string> why{
      fmt::format("{} of the {} reserved are not live: {} in {} free segments, {} beside live blocks",
                  to_string(layout.usable + layout.stuck), to_string(layout.reserved), to_string(layout.usable),
                  layout.empty_segments, to_string(layout.stuck))};
  if (history.has_history) {
    why.push_back(fmt::format("the pool grew to {} while at most {} were live: requests of other sizes came before",
                              to_string(history.reserved_peak), to_string(history.peak.live)));
  }
  return Finding{part >= 0.4 ? 0.5 : 0.3, std::move(why)};
}

std::optional<Finding> compiling(const Evidence& evidence) {
  if (!evidence.history || evidence.history->phase != trace::Phase::Compiling) return std::nullopt;
  return Finding{0.6, {"at this moment torch.compile was trying kernels, which allocates on the device"}};
}

constexpr std::array kCompositionRules = {
    CauseRule{"activations", "Activations make the peak", &activations},
    CauseRule{"model_weights", "The weights themselves make the peak", &parameters},
    CauseRule{"gradients", "Gradients make the peak", &gradients},
    CauseRule{"temporaries", "Temporaries make the peak", &temporaries},
    CauseRule{"workspace", "The workspace of single ops makes the peak", &workspace},
    CauseRule{"library_buffers", "Workspaces and buffers of libraries", &library},
    CauseRule{"weight_copies", "Autocast's copies of the weights", &weight_copies},
    CauseRule{"data_on_device", "Inputs kept on the device", &inputs},
    CauseRule{"cached_unused", "The pool keeps memory that nothing uses", &cached_unused},
    CauseRule{"compiler", "The compiler's own trials make the peak", &compiling},
};

}  // namespace

std::span<const CauseRule> composition_rules() { return kCompositionRules; }

}  // namespace ullage::diagnose
