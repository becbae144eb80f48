// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/accumulation.h"

#include "ullage/train/graph_walk.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

namespace ullage::train {
namespace {

using torch::optim::Optimizer;

constexpr const char* kFunction = "batch_norm";

std::string number(double value) {
  std::ostringstream out;
  out.precision(10);
  out << value;
  return std::move(out).str();
}

Error bad(std::string message, std::string where = "") {
  return Error{Error::Kind::BadArgument, std::move(message), std::move(where)};
}

// Adds `layer` if it is a BatchNorm of this type that looks across the batch. Returns whether it is of this type.
template <class Norm>
bool add_batch_norm(const torch::nn::Module& layer, const std::string& name, const char* kind,
                    std::vector<AcrossTheBatch>& found) {
  const auto* norm = dynamic_cast<const Norm*>(&layer);
  if (norm == nullptr) return false;
  const bool tracks = norm->options.track_running_stats();
  if (!norm->is_training() && tracks) return true;
  std::string what = "mean and variance are those of each micro-batch, not of the batch";
  if (tracks && norm->is_training()) what += "; the running averages are updated once a micro-batch";
  found.push_back({name, kind, std::move(what)});
  return true;
}

template <class Norm>
bool add_instance_norm(const torch::nn::Module& layer, const std::string& name, const char* kind,
                       std::vector<AcrossTheBatch>& found) {
  const auto* norm = dynamic_cast<const Norm*>(&layer);
  if (norm == nullptr) return false;
  if (norm->is_training() && norm->options.track_running_stats()) {
    found.push_back({name, kind,
                     "the running averages are updated once a micro-batch, each with the mean over its samples; the "
                     "gradient is the same"});
  }
  return true;
}

void add_layer(const torch::nn::Module& layer, const std::string& name, std::vector<AcrossTheBatch>& found) {
  using namespace torch::nn;
  add_batch_norm<BatchNorm1dImpl>(layer, name, "BatchNorm1d", found) ||
      add_batch_norm<BatchNorm2dImpl>(layer, name, "BatchNorm2d", found) ||
      add_batch_norm<BatchNorm3dImpl>(layer, name, "BatchNorm3d", found) ||
      add_instance_norm<InstanceNorm1dImpl>(layer, name, "InstanceNorm1d", found) ||
      add_instance_norm<InstanceNorm2dImpl>(layer, name, "InstanceNorm2d", found) ||
      add_instance_norm<InstanceNorm3dImpl>(layer, name, "InstanceNorm3d", found);
  for (const auto& child : layer.named_children())
    add_layer(*child.value(), name.empty() ? child.key() : name + "." + child.key(), found);
}

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Does the node belong to a batch norm that takes the statistics of its input?
bool is_batch_norm_in_training(const torch::autograd::Node& node) {
  namespace generated = torch::autograd::generated;
  if (const auto* native = dynamic_cast<const generated::NativeBatchNormBackward0*>(&node)) return native->training;
  if (const auto* cudnn = dynamic_cast<const generated::CudnnBatchNormBackward0*>(&node)) return cudnn->training;
  if (const auto* miopen = dynamic_cast<const generated::MiopenBatchNormBackward0*>(&node)) return miopen->training;
  if (const auto* legit = dynamic_cast<const generated::NativeBatchNormLegitBackward0*>(&node)) return legit->training;
  return dynamic_cast<const generated::BatchNormWithUpdateBackward0*>(&node) != nullptr;
}

// Whole numbers must agree. Sums of a mask's weights are rounded as the program adds them.
bool is_all(double seen, double whole) {
  const bool counted = seen == std::floor(seen) && whole == std::floor(whole);
  return counted ? seen == whole : std::abs(seen - whole) <= 1e-4 * whole;
}

std::vector<at::Tensor> gradients_of(Optimizer& optimizer) {
  std::vector<at::Tensor> gradients;
  for (auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  return gradients;
}

// As Python's clip_grad_norm_, bit for bit; LibTorch's takes the norms by another kernel. Returns the norm before it
// clips.
double clip(const std::vector<at::Tensor>& gradients, double limit) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients)
    norms.push_back(at::linalg_vector_norm(gradient, 2).to(gradients[0].device()));
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms), 2);
  const at::Tensor factor = ((norm + 1e-6).reciprocal() * limit).clamp_max(1.0);
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor.to(gradient.device()));
  return norm.item<double>();
}

}  // namespace

Result<std::vector<Slice>> micro_batches(std::int64_t batch, std::int64_t micro) {
  if (batch < 1) return bad("a batch of " + std::to_string(batch) + " samples; it must have at least 1");
  if (micro < 1 || micro > batch) {
    return bad("a micro-batch of " + std::to_string(micro) + " samples cannot be cut from a batch of " +
               std::to_string(batch) + "; give 1 to " + std::to_string(batch));
  }
  std::vector<Slice> slices;
  for (std::int64_t begin = 0; begin < batch; begin += micro) slices.push_back({begin, std::min(begin + micro, batch)});
  return slices;
}

std::vector<AcrossTheBatch> layers_across_the_batch(const torch::nn::Module& module) {
  std::vector<AcrossTheBatch> found;
  add_layer(module, "", found);
  return found;
}

Result<Accumulation> Accumulation::create(const torch::nn::Module& module, Options options) {
  if (options.clip_norm && !(*options.clip_norm > 0))
    return bad("clip_norm is " + number(*options.clip_norm) + "; it must be above 0", "clip_norm");
  Accumulation made(std::move(options));
  std::string refused;
  for (AcrossTheBatch& layer : layers_across_the_batch(module)) {
    if (names(made.options_.allow, layer.layer) || names(made.options_.allow, layer.kind)) {
      made.differences_.push_back(std::move(layer));
    } else {
      refused += (refused.empty() ? "" : "; ") + layer.layer + " (" + layer.kind + "): " + layer.what;
    }
  }
  if (!refused.empty()) {
    return bad("these layers compute across the batch, so micro-batches change their results: " + refused +
               "; allow them by name or kind (Accumulation::Options::allow), or use layers that do not (GroupNorm, "
               "LayerNorm)");
  }
  for (const std::string& name : made.options_.allow) {
    const bool used =
        name == kFunction || std::any_of(made.differences_.begin(), made.differences_.end(),
                                         [&](const auto& d) { return d.layer == name || d.kind == name; });
    if (!used)
      return bad("'" + name + "' is in allow, but no layer of that name or kind computes across the batch", "allow");
  }
  return made;
}

Status Accumulation::begin(Counts whole, Counts mean) {
  ULLAGE_CHECK(whole_.empty(), "begin() of a window while one is open: call step() or abandon() first");
  if (whole.empty())
    return bad("begin() was given no counts; give the number of samples (or tokens) that the losses average over");
  for (const auto& [of, count] : whole) {
    if (!(count > 0) || std::isinf(count))
      return bad("the whole batch has " + number(count) + " " + of + "; it must have more than 0");
    if (const auto all = mean.find(of); all == mean.end() || !(all->second > 0) || std::isinf(all->second))
      return bad("begin() was given no mean count of " + of + " above 0 for the batches of all processes");
  }
  whole_ = std::move(whole), mean_ = std::move(mean);
  seen_.clear();
  looked_at_graph_ = prepared_last_ = false;
  return success();
}

Result<at::Tensor> Accumulation::weigh(const at::Tensor& loss, double part, const std::string& of) {
  ULLAGE_CHECK(!whole_.empty(), "weigh() outside a window: call begin() first");
  const auto whole = whole_.find(of);
  if (whole == whole_.end())
    return bad("a loss averages over " + of + ", but begin() was given no count of these for the whole batch");
  const double seen = seen_[of] + part;
  if (!(part >= 0) || (seen > whole->second && !is_all(seen, whole->second))) {
    return bad("a micro-batch of " + number(part) + " " + of + " after " + number(seen_[of]) + " of " +
               number(whole->second) + "; the parts must add up to the whole that begin() was given");
  }
  seen_[of] = seen;
  if (part == 0) return at::Tensor();
  return loss * (part / mean_.at(of));
}

// Finds a batch norm that a module's forward() calls as a function, in the graph of the first loss. If layers across
// the batch were found and allowed, this is skipped, because the graph does not show which nodes are theirs.
Status Accumulation::look_at_graph(const at::Tensor& loss) {
  if (std::exchange(looked_at_graph_, true) || !differences_.empty() || names(options_.allow, kFunction))
    return success();
  bool found = false;
  for_each_node(loss, [&](const torch::autograd::Node& node) { return !(found = is_batch_norm_in_training(node)); });
  if (!found) return success();
  return bad(
      "a batch_norm that is called as a function takes mean and variance of each micro-batch, not of the batch; allow "
      "\"batch_norm\" (Accumulation::Options::allow), or use layers that do not look across the batch");
}

std::optional<std::string> Accumulation::missing() {
  for (const auto& [of, count] : whole_) {
    if (!is_all(seen_[of], count)) return number(seen_[of]) + " of " + number(count) + " " + of;
  }
  return std::nullopt;
}

Status Accumulation::prepare_last(const at::Tensor& loss) {
  if (!options_.before_last) return success();
  if (prepared_last_) {
    return bad(
        "a backward pass after the last of the window: the gradients were averaged among processes already; give "
        "begin() the counts of all micro-batches");
  }
  if (missing()) return success();
  prepared_last_ = true;
  options_.before_last(loss);
  return success();
}

Status Accumulation::backward(const at::Tensor& loss, double part) {
  ULLAGE_TRY_VALUE(const at::Tensor weighed, weigh(loss, part));
  return backward(weighed);
}

Status Accumulation::backward(const at::Tensor& weighed) {
  ULLAGE_CHECK(!whole_.empty(), "backward() outside a window: call begin() first");
  if (!weighed.defined()) return success();
  ULLAGE_TRY(look_at_graph(weighed));
  ULLAGE_TRY(prepare_last(weighed));
  if (options_.scaler != nullptr) {
    options_.scaler->scale(weighed).backward();
  } else {
    weighed.backward();
  }
  return success();
}

Result<Accumulation::End> Accumulation::step(const std::vector<Optimizer*>& optimizers) {
  ULLAGE_CHECK(!whole_.empty(), "step() outside a window: call begin() first");
  if (const std::optional<std::string> lacks = missing()) {
    return bad("the window has " + *lacks +
               ": the gradient is not that of the batch; give the other micro-batches, or begin() the count that there "
               "is");
  }
  if (options_.before_last && !prepared_last_) {
    return bad(
        "the window's last micro-batch had no backward pass, so the gradients were not averaged among processes; give "
        "its loss to backward()");
  }
  abandon();
  End end;
  bool any = false;
  for (Optimizer* optimizer : optimizers) {
    const std::vector<at::Tensor> gradients = gradients_of(*optimizer);
    if (gradients.empty()) continue;
    any = true;
    if (options_.scaler != nullptr && options_.clip_norm) options_.scaler->unscale_(*optimizer);
    if (options_.clip_norm) end.grad_norms.push_back(clip(gradients, *options_.clip_norm));
    if (options_.scaler != nullptr) {
      end.stepped &= options_.scaler->step(*optimizer);
    } else {
      optimizer->step();
    }
  }
  if (options_.scaler != nullptr && any) end.scaler = options_.scaler->update();
  return end;
}

}  // namespace ullage::train
