// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/arguments.h"

#include "ullage/plan/model/recompute_rules.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace ullage::plan {
namespace {

using trace::TensorUse;
using UseList = std::vector<TensorUse>;

// Ops whose second argument is the input of the forward pass.
constexpr std::string_view kSizesOfInput[] = {
    "aten::_adaptive_avg_pool2d_backward",    "aten::adaptive_max_pool2d_backward", "aten::avg_pool2d_backward",
    "aten::max_pool2d_with_indices_backward", "aten::nll_loss2d_backward",          "aten::nll_loss_backward",
    "aten::reflection_pad2d_backward",        "aten::replication_pad2d_backward"};

constexpr std::string_view kLike[] = {"aten::empty_like", "aten::full_like",  "aten::new_zeros", "aten::ones_like",
                                      "aten::rand_like",  "aten::randn_like", "aten::zeros_like"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// With one group the weight's first two sizes are (output channels, input channels), reversed if the convolution is
// transposed.
bool has_one_group(const TensorUse& gradient, const TensorUse& input, const TensorUse& weight) {
  if (gradient.sizes.size() < 2 || input.sizes.size() < 2 || weight.sizes.size() < 2) return false;
  const std::pair channels(gradient.sizes[1], input.sizes[1]), of_weight(weight.sizes[0], weight.sizes[1]);
  return of_weight == channels || of_weight == std::pair(channels.second, channels.first);
}

// Gradients that were not asked for are missing among the results. The sizes tell which ones are there.
std::vector<StorageId> unread_by_convolution(const UseList& arguments, const UseList& results) {
  if (arguments.size() != 3) return {};
  const auto made_for = [&](std::size_t i) {
    return std::ranges::count(results, arguments[i].sizes, &TensorUse::sizes);
  };
  const std::ptrdiff_t for_input = made_for(1), for_weight = made_for(2);
  if (arguments[1].sizes == arguments[2].sizes) return {};
  if (for_input == 1 && for_weight == 0 && has_one_group(arguments[0], arguments[1], arguments[2])) {
    return {arguments[1].storage};
  }
  if (for_input == 0 && for_weight == 1) return {arguments[2].storage};
  return {};
}

// How many tensors a call must have, by base name, or by "base.overload" if the overload matters. For names that are
// not listed: two if the overload begins with "Tensor" and is not "Tensor_Scalar", else one.
struct Least {
  std::string_view name;
  std::size_t tensors;
};
constexpr Least kLeast[] = {{"_addmm_activation", 3},
                            {"_cdist_forward", 2},
                            {"_convolution", 2},
                            {"_native_batch_norm_legit_no_training", 3},
                            {"_prelu_kernel", 2},
                            {"_scaled_dot_product_flash_attention_for_cpu", 3},
                            {"_trilinear", 3},
                            {"_unsafe_index", 2},
                            {"_weight_norm_interface", 2},
                            {"addbmm", 3},
                            {"addcdiv", 3},
                            {"addcmul", 3},
                            {"addmm", 3},
                            {"addmv", 3},
                            {"addr", 3},
                            {"atan2", 2},
                            {"baddbmm", 3},
                            {"binary_cross_entropy", 2},
                            {"binary_cross_entropy_with_logits", 2},
                            {"bmm", 2},
                            {"complex", 2},
                            {"convolution", 2},
                            {"copy", 2},
                            {"diagonal_scatter", 2},
                            {"dist", 2},
                            {"dot", 2},
                            {"embedding", 2},
                            {"fmax", 2},
                            {"fmin", 2},
                            {"gather", 2},
                            {"grid_sampler_2d", 2},
                            {"grid_sampler_3d", 2},
                            {"heaviside", 2},
                            {"huber_loss", 2},
                            {"hypot", 2},
                            {"index", 2},
                            {"index_fill", 2},
                            {"index_fill.int_Tensor", 3},
                            {"index_select", 2},
                            {"lerp", 2},
                            {"lerp.Tensor", 3},
                            {"linalg_cross", 2},
                            {"logaddexp", 2},
                            {"logaddexp2", 2},
                            {"logical_and", 2},
                            {"logical_or", 2},
                            {"logical_xor", 2},
                            {"masked_fill", 2},
                            {"masked_fill.Tensor", 3},
                            {"masked_scatter", 3},
                            {"masked_select", 2},
                            {"max.other", 2},
                            {"maximum", 2},
                            {"min.other", 2},
                            {"minimum", 2},
                            {"mkldnn_rnn_layer", 7},
                            {"mm", 2},
                            {"mse_loss", 2},
                            {"multi_margin_loss", 2},
                            {"multilabel_margin_loss_forward", 2},
                            {"mv", 2},
                            {"nextafter", 2},
                            {"nll_loss2d_forward", 2},
                            {"nll_loss_forward", 2},
                            {"normal.float_float", 0},
                            {"polar", 2},
                            {"repeat_interleave.Tensor", 1},
                            {"repeat_interleave.self_Tensor", 2},
                            {"scatter", 2},
                            {"scatter.src", 3},
                            {"select_scatter", 2},
                            {"slice_scatter", 2},
                            {"smooth_l1_loss", 2},
                            {"soft_margin_loss", 2},
                            {"take", 2},
                            {"vdot", 2},
                            {"where.self", 3}};

std::size_t least_tensors(std::string_view name) {
  const OpName parts = parts_of(name);
  const auto find = [](std::string_view base, std::string_view overload) {
    return std::ranges::find_if(kLeast, [&](const Least& one) {
      return overload.empty() ? one.name == base
                              : one.name.size() == base.size() + 1 + overload.size() && one.name.starts_with(base) &&
                                    one.name.ends_with(overload) && one.name[base.size()] == '.';
    });
  };
  const auto exact = parts.overload.empty() ? std::ranges::end(kLeast) : find(parts.base, parts.overload);
  if (exact != std::ranges::end(kLeast)) return exact->tensors;
  const auto any = find(parts.base, {});
  if (any != std::ranges::end(kLeast)) return any->tensors;
  return parts.overload.starts_with("Tensor") && parts.overload != "Tensor_Scalar" ? 2 : 1;
}

std::uint64_t elements(const UseList& uses) {
  std::uint64_t all = 0;
  for (const TensorUse& use : uses) {
    std::uint64_t count = 1;
    for (const std::int64_t size : use.sizes) count *= static_cast<std::uint64_t>(size);  // wraps alike on both sides
    all += count;
  }
  return all;
}

}  // namespace

UseList uses_of(const trace::OpDetail& detail, bool results) {
  UseList some;
  for (const TensorUse& use : detail.uses) {
    if ((use.how == TensorUse::How::Output) == results) some.push_back(use);
  }
  return some;
}

std::vector<StorageId> unread_storages(std::string_view name, const trace::OpDetail& detail) {
  if (detail.failed) return {};
  const UseList arguments = uses_of(detail, false);
  std::vector<StorageId> unread;
  if (is_view(name) || is_one_of(kLike, name)) {
    for (const TensorUse& use : arguments) unread.push_back(use.storage);
  } else if (is_one_of(kSizesOfInput, name) && arguments.size() > 1) {
    unread = {arguments[1].storage};
  } else if (name == "aten::convolution_backward") {
    unread = unread_by_convolution(arguments, uses_of(detail, true));
  } else {
    return {};
  }
  // Another argument may be a view of the same storage, and the op may read that one.
  if (unread.size() == 1) {
    if (std::ranges::count(arguments, unread[0], &TensorUse::storage) != 1) return {};
  }
  return unread;
}

bool all_arguments_seen(std::string_view name, const trace::OpDetail& detail) {
  if (detail.outside.other) return false;
  if (detail.outside.mapped) return true;  // the mapped weights are the only arguments that were not recorded
  const UseList arguments = uses_of(detail, false);
  const std::string_view base = parts_of(name).base;
  if (base == "cat" || base == "stack") return elements(arguments) == elements(uses_of(detail, true));
  if (makes_from_nothing(name)) return true;
  return arguments.size() >= least_tensors(name);
}

}  // namespace ullage::plan
