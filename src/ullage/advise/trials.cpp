// SPDX-License-Identifier: Apache-2.0
#include "ullage/advise/trials.h"

#include "ullage/base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace ullage::advise {
namespace {

using Made = std::optional<Trial>;

struct Remedy {
  std::string_view id;
  Made (*make)(const Facts&, const Setting&);  // returns nothing if it does not apply
};

bool says(const std::string& allocator, std::string_view option) { return allocator.find(option) != std::string::npos; }

Trial allocator_trial(const Setting& setting, const std::string& option) {
  Trial trial;
  trial.name = "allocator: " + option;
  trial.allocator = setting.allocator.empty() ? option : setting.allocator + "," + option;
  trial.action = "export PYTORCH_CUDA_ALLOC_CONF=" + trial.allocator;
  return trial;
}

Made expandable_segments(const Facts&, const Setting& setting) {
  if (!setting.on_card || says(setting.allocator, "expandable_segments") || says(setting.allocator, "backend:"))
    return std::nullopt;
  return allocator_trial(setting, "expandable_segments:True");
}

Made max_split_size(const Facts&, const Setting& setting) {
  if (!setting.on_card || says(setting.allocator, "max_split_size_mb") || says(setting.allocator, "expandable") ||
      says(setting.allocator, "backend:"))
    return std::nullopt;
  return allocator_trial(setting, "max_split_size_mb:128");
}

Made lean_malloc(const Facts& facts, const Setting& setting) {
  if (setting.on_card || setting.sets_malloc || !facts.optimizer) return std::nullopt;
  Trial trial;
  trial.name = "malloc gives back what is freed; without Ullage";
  trial.is_plain = true;
  trial.action = fmt::format("export {}={}", kLeanMalloc.first, kLeanMalloc.second);
  return trial;
}

Made foreach_false(const Facts& facts, const Setting&) {
  if (!facts.optimizer || !facts.optimizer->has_foreach) return std::nullopt;
  const Facts::Optimizer& of = *facts.optimizer;
  // Torch's default takes lists of temporaries on a card only.
  if (of.foreach || of.fused.value_or(false) || of.device != "cuda") return std::nullopt;
  Trial trial;
  trial.name = "optimizer: no lists of temporaries";
  trial.switches = "foreach=0";
  trial.action = fmt::format("torch.optim.{}(..., foreach=False)", of.name);
  trial.place = of.made;
  return trial;
}

Made fused_optimizer(const Facts& facts, const Setting&) {
  if (!facts.optimizer || !facts.optimizer->has_fused) return std::nullopt;
  const Facts::Optimizer& of = *facts.optimizer;
  if (of.foreach || of.fused || of.device != "cuda") return std::nullopt;
  Trial trial;
  trial.name = "optimizer: fused";
  trial.effect = Effect::Rounding;  // one kernel in place of several
  trial.switches = "fused=1";
  trial.action = fmt::format("torch.optim.{}(..., fused=True)", of.name);
  trial.place = of.made;
  return trial;
}

Made set_to_none(const Facts& facts, const Setting&) {
  if (!facts.keeps_zeroed_gradients) return std::nullopt;
  Trial trial;
  trial.name = "free gradients between steps";
  trial.switches = "set_to_none";
  trial.action = "zero_grad(set_to_none=True)";
  trial.place = *facts.keeps_zeroed_gradients;
  return trial;
}

Made benchmark_off(const Facts& facts, const Setting& setting) {
  if (!setting.on_card || !facts.cudnn_benchmark) return std::nullopt;
  Trial trial;
  trial.name = "cuDNN: no trial runs";
  trial.effect = Effect::Rounding;  // another algorithm may be chosen
  trial.switches = "benchmark=0";
  trial.action = "torch.backends.cudnn.benchmark = False";
  return trial;
}

Made bucket_views(const Facts& facts, const Setting&) {
  if (!facts.replicas || facts.replicas->bucket_views) return std::nullopt;
  Trial trial;
  trial.name = "gradients inside their buckets";
  trial.switches = "bucket_views";
  trial.action = "DistributedDataParallel(..., gradient_as_bucket_view=True)";
  trial.place = facts.replicas->made;
  return trial;
}

Made checkpointing(const Facts& facts, const Setting&) {
  if (!facts.repeated_layers || !facts.network || facts.checkpoint) return std::nullopt;
  const Facts::Layers& layers = *facts.repeated_layers;
  Trial trial;
  trial.name = fmt::format("checkpoint each of {} {}", layers.count, layers.name);
  // A layer that runs twice updates its running statistics twice.
  trial.effect = layers.has_batch_norm ? Effect::Different : Effect::SameBits;
  trial.switches = "checkpoint";
  trial.action =
      fmt::format("torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) around each {}", layers.name);
  trial.place = layers.called;
  return trial;
}

Made fused_attention(const Facts& facts, const Setting&) {
  if (!facts.math_attention) return std::nullopt;
  Trial trial;
  trial.name = "attention that keeps no matrix";
  trial.effect = Effect::Rounding;
  trial.switches = "attention";
  trial.action =
      "torch.nn.attention.sdpa_kernel([FLASH_ATTENTION, EFFICIENT_ATTENTION, MATH]), or leave out what switches the "
      "first two off";
  trial.place = *facts.math_attention;
  return trial;
}

Made half_precision(const Facts& facts, const Setting& setting) {
  if (!facts.network || facts.autocast || facts.has_half_weights) return std::nullopt;
  const char* type = setting.has_bfloat16 ? "bfloat16" : "float16";
  const char* scaler = setting.has_bfloat16 ? "" : ", and a torch.amp.GradScaler";
  Trial trial;
  trial.name = setting.has_bfloat16 ? "bf16 autocast" : "fp16 autocast";
  trial.effect = Effect::Rounding;
  if (facts.autocast_off) {
    trial.switches = fmt::format("own_autocast={}", type);
    trial.action = fmt::format("switch the program's own autocast on, with dtype=torch.{}{}", type, scaler);
    trial.place = *facts.autocast_off;
    return trial;
  }
  trial.switches = fmt::format("autocast={}", type);
  trial.if_refused = "float_outputs";
  trial.action = fmt::format("with torch.autocast(\"{}\", torch.{}): around {}(...) and the loss{}",
                             facts.network->device, type, facts.network->name, scaler);
  trial.more_action = "; then .float() on what it returns";
  trial.place = facts.network->called;
  return trial;
}

constexpr std::array kRemedies = {
    Remedy{"gradient_checkpointing", checkpointing},
    Remedy{"half_precision", half_precision},
    Remedy{"fused_attention", fused_attention},
    Remedy{"expandable_segments", expandable_segments},
    Remedy{"foreach_false", foreach_false},
    Remedy{"set_to_none", set_to_none},
    Remedy{"bucket_views", bucket_views},
    Remedy{"benchmark_off", benchmark_off},
    Remedy{"fused_optimizer", fused_optimizer},
    Remedy{"max_split_size_mb", max_split_size},
    Remedy{"lean_malloc", lean_malloc},
};

void append(std::string& all, const std::string& more, std::string_view between) {
  if (more.empty()) return;
  if (!all.empty()) all += between;
  all += more;
}

}  // namespace

const char* name(Effect effect) {
  switch (effect) {
    case Effect::SameBits:
      return "bit-equal";
    case Effect::Rounding:
      return "rounding";
    case Effect::Different:
      return "different";
  }
  return "";
}

std::vector<Trial> trials_for(const Facts& facts, const Setting& setting) {
  std::vector<Trial> trials;
  for (const Remedy& remedy : kRemedies) {
    Made made = remedy.make(facts, setting);
    if (!made) continue;
    made->id = std::string(remedy.id);
    trials.push_back(std::move(*made));
  }
  return trials;
}

Trial option_trial(const Choice& choice, std::int64_t value) {
  Trial trial;
  trial.id = choice.name;
  trial.effect = Effect::Different;
  trial.options = {{choice.name, choice.word(value)}};
  trial.name = fmt::format("--{} {}", choice.name, choice.word(value));
  return trial;
}

Trial together(std::span<const Trial> trials) {
  ULLAGE_CHECK(!trials.empty(), "together() of no trial");
  Trial all;
  for (const Trial& one : trials) {
    append(all.id, one.id, "+");
    append(all.name, one.name, " + ");
    append(all.switches, one.switches, " ");
    append(all.if_refused, one.if_refused, " ");
    append(all.action, one.action, "; ");
    append(all.more_action, one.more_action, "");
    all.options.insert(all.options.end(), one.options.begin(), one.options.end());
    if (!one.allocator.empty()) all.allocator = one.allocator;
    all.effect = std::max(all.effect, one.effect);
  }
  if (trials.size() == 1) all.place = trials.front().place;
  return all;
}

std::string smaller_size(const Knob& knob, std::int64_t fits) {
  std::int64_t part = knob.name.find("batch") == std::string::npos ? 1 : fits;
  while (part > 1 && knob.value % part != 0) --part;
  if (part <= 1) return fmt::format("{}={} in place of {}", knob.name, fits, knob.value);
  return fmt::format(
      "{0}={1}, and for a step of {2} as before: add up the gradients of {3} batches, each loss divided by {3}",
      knob.name, part, knob.value, knob.value / part);
}

std::vector<std::string_view> remedy_ids() {
  std::vector<std::string_view> ids;
  for (const Remedy& remedy : kRemedies) ids.push_back(remedy.id);
  return ids;
}

}  // namespace ullage::advise
