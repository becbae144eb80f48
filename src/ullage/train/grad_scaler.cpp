// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/grad_scaler.h"

#include "ullage/train/graph_walk.h"

#include <ATen/Context.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

namespace ullage::train {
namespace {

using torch::optim::Optimizer;

constexpr int kOverflowsToSpeakOf = 20;
constexpr std::array<const char*, 5> kStateNames = {"scale", "growth_factor", "backoff_factor", "growth_interval",
                                                    "_growth_tracker"};

at::Tensor scalar(double value, at::ScalarType dtype, const at::Device& device) {
  return at::full({}, value, at::TensorOptions().dtype(dtype).device(device));
}

// Returns the copy of `original` on `device`, made when it is first asked for. Python copies even to the same device,
// so that found_inf of several optimizers are tensors of their own.
at::Tensor copy_on(std::vector<std::pair<at::Device, at::Tensor>>& copies, const at::Tensor& original,
                   const at::Device& device) {
  for (const auto& [where, copy] : copies) {
    if (where == device) return copy;
  }
  return copies.emplace_back(device, original.to(device, original.scalar_type(), /*non_blocking=*/true, /*copy=*/true))
      .second;
}

std::string text(double value) {
  std::ostringstream out;
  out << value;
  return std::move(out).str();
}

Error bad_state(std::string message) {
  return Error{Error::Kind::BadFile, std::move(message), "state of a GradScaler"};
}

bool is_count(double value) { return value >= 0 && value <= 9007199254740992.0 && value == std::floor(value); }

Status check_values(const GradScaler::State& state) {
  const auto refuse = [&](const char* name, const char* must) {
    return bad_state(std::string(name) + " is " + text(state.at(name)) + "; it must be " + must);
  };
  if (!(state.at("scale") >= 0) || std::isinf(state.at("scale"))) return refuse("scale", "a number from 0 on");
  if (!(state.at("growth_factor") > 1)) return refuse("growth_factor", "above 1");
  if (!(state.at("backoff_factor") > 0 && state.at("backoff_factor") < 1))
    return refuse("backoff_factor", "between 0 and 1");
  if (!is_count(state.at("growth_interval")) || state.at("growth_interval") < 1)
    return refuse("growth_interval", "a whole number from 1 on");
  if (!is_count(state.at("_growth_tracker"))) return refuse("_growth_tracker", "a whole number from 0 on");
  return success();
}

}  // namespace

GradScaler::GradScaler(c10::DeviceType device, Settings settings) : settings_(settings) {
  if (settings_.enabled && device == c10::DeviceType::CUDA && !at::globalContext().hasCUDA()) {
    settings_.enabled = false;
    advice_ = "the GradScaler is for cuda, and there is no CUDA device here: it is not enabled";
  }
  if (!settings_.enabled) return;
  ULLAGE_CHECK(settings_.growth_factor > 1,
               ("growth_factor is " + text(settings_.growth_factor) + "; it must be above 1").c_str());
  ULLAGE_CHECK(settings_.backoff_factor < 1,
               ("backoff_factor is " + text(settings_.backoff_factor) + "; it must be below 1").c_str());
}

void GradScaler::check_scaled(const char* what) const {
  if (!scale_.defined())
    throw ContractError(std::string(what) + "() before scale(): call scale(loss).backward() first");
}

void GradScaler::make_scale(const c10::Device& device) {
  scale_ = scalar(settings_.init_scale, at::kFloat, device);
  growth_tracker_ = scalar(static_cast<double>(init_growth_tracker_), at::kInt, device);
}

// Sets advice_ if ops of the forward pass gave bfloat16 and none gave float16. Looks at the first outputs only. What a
// node of the graph takes in backward has the types of what its op gave in the forward pass.
void GradScaler::look_at_types(const at::Tensor& outputs) {
  if (std::exchange(looked_at_types_, true)) return;
  bool half = false, bfloat = false;
  for_each_node(outputs, [&](const torch::autograd::Node& node) {
    for (std::uint32_t i = 0; i < node.num_inputs(); ++i) {
      const auto dtype = node.input_metadata(i).dtype().toScalarType();
      half |= dtype == at::kHalf, bfloat |= dtype == at::kBFloat16;
    }
    return !half;
  });
  if (bfloat && !half) {
    advice_ =
        "a GradScaler is not needed with bfloat16, which has the range of float32: leave it out, or make it with "
        "enabled = false";
  }
}

at::Tensor GradScaler::scale(const at::Tensor& outputs) {
  if (!settings_.enabled) return outputs;
  if (!scale_.defined()) make_scale(outputs.device());
  look_at_types(outputs);
  return outputs * scale_.to(outputs.device(), /*non_blocking=*/true);
}

std::vector<at::Tensor> GradScaler::scale(const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> scaled;
  for (const at::Tensor& one : outputs) scaled.push_back(scale(one));
  return scaled;
}

GradScaler::PerDevice GradScaler::unscale_gradients(Optimizer& optimizer, const at::Tensor& inverse) {
  struct Group {
    at::Device device;
    at::ScalarType dtype;
    std::vector<at::Tensor> gradients;
  };
  std::vector<Group> groups;
  const c10::AutoGradMode no_grad(false);
  for (auto& parameters : optimizer.param_groups()) {
    for (at::Tensor& parameter : parameters.params()) {
      const at::Tensor& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        throw ContractError(
            "a gradient is float16 and cannot be unscaled: keep the parameters in float32 and run the forward pass "
            "under an AutocastGuard");
      }
      const at::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
      Group* group = nullptr;
      for (Group& one : groups) {
        if (one.device == values.device() && one.dtype == values.scalar_type()) group = &one;
      }
      if (group == nullptr) group = &groups.emplace_back(Group{values.device(), values.scalar_type(), {}});
      group->gradients.push_back(values);
    }
  }
  PerDevice inverses, found;
  const at::Tensor none_found = scalar(0, at::kFloat, scale_.device());
  for (Group& group : groups) {
    at::Tensor found_here = copy_on(found, none_found, group.device);
    at::_amp_foreach_non_finite_check_and_unscale_(group.gradients, found_here,
                                                   copy_on(inverses, inverse, group.device));
  }
  return found;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!settings_.enabled) return;
  check_scaled("unscale_");
  OptimizerState& state = optimizers_[&optimizer];
  if (state.stage == Stage::Unscaled)
    throw ContractError("unscale_() was called twice for an optimizer: call update() at the end of each iteration");
  if (state.stage == Stage::Stepped)
    throw ContractError("unscale_() after step(): call it before, and update() at the end of each iteration");
  // The reciprocal in float64, as in Python: in float32 its last bit depends on the compiler.
  state.found_inf = unscale_gradients(optimizer, scale_.to(at::kDouble).reciprocal().to(at::kFloat));
  state.stage = Stage::Unscaled;
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!settings_.enabled) {
    optimizer.step();
    return true;
  }
  check_scaled("step");
  OptimizerState& state = optimizers_[&optimizer];
  if (state.stage == Stage::Stepped)
    throw ContractError("step() was called twice for an optimizer: call update() at the end of each iteration");
  if (state.stage == Stage::Ready) unscale_(optimizer);
  if (state.found_inf.empty())
    throw ContractError("step() of an optimizer none of whose parameters has a gradient: call backward() first");
  double found = 0;
  for (const auto& [device, one] : state.found_inf) found += one.item<double>();
  if (found == 0) {
    optimizer.step();
  } else {
    skipped_ = true;
  }
  state.stage = Stage::Stepped;
  return found == 0;
}

Status GradScaler::update(std::optional<double> new_scale) {
  if (!settings_.enabled) return success();
  check_scaled("update");
  const bool skipped = std::exchange(skipped_, false);
  if (new_scale) {
    scale_.fill_(*new_scale);
    optimizers_.clear();
    skipped_in_a_row_ = 0;
    return success();
  }
  at::Tensor found;
  for (auto& [optimizer, state] : optimizers_) {
    for (auto& [device, one] : state.found_inf) {
      const at::Tensor here = one.to(scale_.device(), /*non_blocking=*/true);
      found = found.defined() ? found.add_(here) : here;
    }
  }
  if (!found.defined())
    throw ContractError("update() was called, but no optimizer was unscaled or stepped since the last update()");
  if (skipped && skipped_in_a_row_ == 0) scale_before_row_ = get_scale();
  at::_amp_update_scale_(scale_, growth_tracker_, found, settings_.growth_factor, settings_.backoff_factor,
                         settings_.growth_interval);
  optimizers_.clear();
  return count_overflow(skipped);
}

Status GradScaler::count_overflow(bool skipped) {
  skipped_in_a_row_ = skipped ? skipped_in_a_row_ + 1 : 0;
  if (skipped_in_a_row_ == 0 || skipped_in_a_row_ % kOverflowsToSpeakOf != 0) return success();
  return Error{Error::Kind::System,
               std::to_string(skipped_in_a_row_) +
                   " steps in a row were skipped for inf or nan in gradients: the scale fell from " +
                   text(scale_before_row_) + " to " + text(get_scale()) +
                   " and nothing is trained; the loss or the parameters themselves are inf or nan, or beyond float16's "
                   "65504: look at the loss without autocast, lower the learning rate, or use bfloat16",
               "GradScaler"};
}

double GradScaler::get_scale() const {
  if (!settings_.enabled) return 1;
  return scale_.defined() ? scale_.item<double>() : settings_.init_scale;
}

std::int64_t GradScaler::get_growth_tracker() const {
  if (!settings_.enabled) return 0;
  return growth_tracker_.defined() ? growth_tracker_.item<std::int64_t>() : init_growth_tracker_;
}

GradScaler::State GradScaler::state_dict() const {
  if (!settings_.enabled) return {};
  return {{"scale", get_scale()},
          {"growth_factor", settings_.growth_factor},
          {"backoff_factor", settings_.backoff_factor},
          {"growth_interval", static_cast<double>(settings_.growth_interval)},
          {"_growth_tracker", static_cast<double>(get_growth_tracker())}};
}

Status GradScaler::load_state_dict(const State& state) {
  if (!settings_.enabled) return success();
  if (state.empty())
    return bad_state("it is empty: it was saved from a scaler that was not enabled; start with a new one");
  for (const char* name : kStateNames) {
    if (!state.contains(name))
      return bad_state(std::string("it has no '") + name + "': it was saved from something else");
  }
  for (const auto& [name, value] : state) {
    if (std::find(kStateNames.begin(), kStateNames.end(), name) == kStateNames.end())
      return bad_state("it has '" + name + "', which no GradScaler has: it was saved from something else");
  }
  ULLAGE_TRY(check_values(state));
  settings_.init_scale = state.at("scale");
  settings_.growth_factor = state.at("growth_factor");
  settings_.backoff_factor = state.at("backoff_factor");
  settings_.growth_interval = static_cast<std::int64_t>(state.at("growth_interval"));
  init_growth_tracker_ = static_cast<std::int64_t>(state.at("_growth_tracker"));
  if (scale_.defined()) scale_.fill_(settings_.init_scale);
  if (growth_tracker_.defined()) growth_tracker_.fill_(init_growth_tracker_);
  skipped_in_a_row_ = 0;
  return success();
}

}  // namespace ullage::train
