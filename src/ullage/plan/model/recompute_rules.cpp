// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/recompute_rules.h"

#include <array>
#include <cstddef>

namespace ullage::plan {
namespace {

// Families of base names. has() finds a name by the spaces before and after it.

// Each number of the result depends only on the numbers at its place. In-place forms ("add_") have the same base.
constexpr std::string_view kPointwise =
    " _prelu_kernel abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and "
    "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max "
    "clamp_min complex copysign cos cosh deg2rad digamma div elu eq erf erfc erfinv exp exp2 expm1 floor "
    "floor_divide fmax fmin fmod frac ge gelu glu gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot "
    "isfinite isinf isnan isneginf isposinf le leaky_relu lerp lgamma log log10 log1p log2 log_sigmoid_forward "
    "logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum "
    "mish mul nan_to_num ne neg nextafter polar pow rad2deg reciprocal relu remainder round rsqrt rsub sgn "
    "sigmoid sign signbit silu sin sinc sinh softplus softshrink special_entr special_erfcx special_i0e "
    "special_i1 special_i1e special_log_ndtr special_ndtri special_xlog1py sqrt sub tan tanh threshold tril triu "
    "trunc where xlogy ";

// Norms, and what is scaled by them. They return all that they write. The batch norm with running statistics is not
// here: is_batch_norm() knows it.
constexpr std::string_view kNorms =
    " _native_batch_norm_legit_no_training _weight_norm_interface dist linalg_vector_norm native_group_norm "
    "native_layer_norm norm ";

// Sums of products. The order in which the kernel adds depends only on shapes and the number of threads.
constexpr std::string_view kHeavy =
    " _addmm_activation _cdist_forward _convolution _scaled_dot_product_flash_attention_for_cpu _trilinear addbmm "
    "addmm addmv addr baddbmm bmm convolution dot mkldnn_rnn_layer mm mv vdot ";

// Pooling, padding and resampling: ops on windows and grids.
constexpr std::string_view kPools =
    " _adaptive_avg_pool2d _adaptive_avg_pool3d _upsample_bicubic2d_aa _upsample_bilinear2d_aa "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_max_pool2d "
    "adaptive_max_pool3d affine_grid_generator avg_pool2d avg_pool3d channel_shuffle col2im constant_pad_nd "
    "grid_sampler_2d grid_sampler_3d im2col max_pool2d_with_indices max_pool3d_with_indices "
    "native_channel_shuffle pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d "
    "replication_pad1d replication_pad2d replication_pad3d upsample_bicubic2d upsample_bilinear2d "
    "upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d ";

// Reductions and scans over one dimension or all. The kernels divide the work by shape and number of threads, not by
// which thread comes first.
constexpr std::string_view kReductions =
    " _log_softmax _logcumsumexp _safe_softmax _softmax all amax amin aminmax any argmax argmin count_nonzero "
    "cummax cummin cumprod cumsum kthvalue logcumsumexp logsumexp max mean median min nansum prod std std_mean "
    "sum trace var var_mean ";

// The same numbers at other places. If two go to one place, the order of a loop decides, not a race. Ops that sum at
// one place (index_put, scatter_add, index_add) are left out.
constexpr std::string_view kMoves =
    " _reshape_copy _to_copy _unsafe_index bucketize cat clone copy diag_embed diagonal_scatter embedding flip "
    "gather index index_fill index_select linalg_cross masked_scatter masked_select nonzero repeat "
    "repeat_interleave roll rot90 scatter searchsorted select_scatter slice_scatter sort stack take topk "
    "tril_indices triu_indices ";

// Forward kernels of losses.
constexpr std::string_view kLosses =
    " binary_cross_entropy binary_cross_entropy_with_logits huber_loss mse_loss multi_margin_loss "
    "multilabel_margin_loss_forward nll_loss2d_forward nll_loss_forward smooth_l1_loss soft_margin_loss ";

// Made from numbers in the call alone. Unlike kBlank, programs do not write to them through a pointer.
constexpr std::string_view kSequences = " arange eye linspace logspace ";

// Draw from the generator that the call names, or the default one. The same state before the call gives the same bits.
constexpr std::string_view kRandom =
    " bernoulli cauchy exponential geometric log_normal multinomial native_dropout normal poisson rand rand_like "
    "randint randint_like randn randn_like random randperm uniform ";

// The ops of kRandom that take no tensor.
constexpr std::string_view kRandomFactories = " rand randint randn randperm ";

// A program may fill these through a pointer, which no op shows: labels, masks, pictures.
constexpr std::string_view kBlank =
    " empty empty_like empty_permuted empty_strided full full_like new_empty new_empty_strided new_full new_ones "
    "new_zeros ones ones_like scalar_tensor zeros zeros_like ";

// In-place ops whose result does not depend on what was there before. (The probabilities of bernoulli_ are another
// tensor.)
constexpr std::string_view kOverwriting =
    " bernoulli cauchy copy exponential fill geometric log_normal normal random uniform zero ";

constexpr std::string_view kViews =
    " _conj _neg_view _reshape_alias _unsafe_view alias as_strided detach diagonal expand lift_fresh permute "
    "select slice split split_with_sizes squeeze t transpose unbind unfold unsafe_split unsafe_split_with_sizes "
    "unsqueeze view view_as_complex view_as_real ";

// On a card these may give other bits in another run, or it is not known that they do not. The list is that of
// torch.use_deterministic_algorithms: sums and scans in the order of arrival, the choice among equals.
constexpr std::string_view kUnsteadyOnCard =
    " _logcumsumexp cummax cummin cumprod cumsum kthvalue logcumsumexp masked_scatter median multinomial scatter topk ";

// With dropout these draw random numbers, and take the generator's state as dropout does.
constexpr std::string_view kRandomOnCard =
    " _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_flash_attention ";

// Backward ops that read weights and write only their results. They are in no family, because it is not known
// that they add up in the same order each time.
constexpr std::string_view kReaders =
    " convolution_backward embedding_dense_backward native_group_norm_backward native_layer_norm_backward ";

struct Family {
  std::string_view names;
  RecomputeRule rule;
};
constexpr std::array kFamilies = {
    Family{kPointwise, RecomputeRule::Plain},  Family{kNorms, RecomputeRule::Plain},
    Family{kHeavy, RecomputeRule::Plain},      Family{kPools, RecomputeRule::Plain},
    Family{kReductions, RecomputeRule::Plain}, Family{kMoves, RecomputeRule::Plain},
    Family{kLosses, RecomputeRule::Plain},     Family{kSequences, RecomputeRule::Plain},
    Family{kRandom, RecomputeRule::Random},    Family{kBlank, RecomputeRule::Blank},
};

bool has(std::string_view names, std::string_view name) {
  if (name.empty() || name.find(' ') != name.npos) return false;
  for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
    if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
  }
  return false;
}

}  // namespace

OpName parts_of(std::string_view name) {
  constexpr std::string_view kNamespace = "aten::";
  if (!name.starts_with(kNamespace)) return {};
  name.remove_prefix(kNamespace.size());
  const std::size_t dot = name.find('.');
  OpName parts{name.substr(0, dot), dot == name.npos ? std::string_view() : name.substr(dot + 1), false};
  parts.in_place = parts.base.ends_with('_') && !parts.base.ends_with("__");
  if (parts.in_place) parts.base.remove_suffix(1);
  return parts;
}

RecomputeRule recompute_rule_of(std::string_view name, Kernels kernels) {
  const OpName parts = parts_of(name);
  if (parts.base.empty()) return RecomputeRule::Never;
  if (kernels == Kernels::Card) {
    if (has(kUnsteadyOnCard, parts.base)) return RecomputeRule::Never;
    if (has(kRandomOnCard, parts.base)) return RecomputeRule::Random;
  }
  for (const std::string_view never : {"out", "reduce"}) {  // writes into a given result; sums at one place
    if (parts.overload.find(never) != name.npos) return RecomputeRule::Never;
  }
  if (is_batch_norm(name)) return RecomputeRule::BatchNorm;
  if (parts.in_place && (parts.base == "fill" || parts.base == "zero")) return RecomputeRule::Plain;
  for (const Family& family : kFamilies) {
    if (has(family.names, parts.base)) return family.rule;
  }
  return RecomputeRule::Never;
}

bool is_batch_norm(std::string_view name) {
  return name == "aten::native_batch_norm" || name == "aten::cudnn_batch_norm";
}

bool overwrites_all(std::string_view name) {
  const OpName parts = parts_of(name);
  return parts.in_place && has(kOverwriting, parts.base);
}

bool makes_from_nothing(std::string_view name) {
  const OpName parts = parts_of(name);
  if (parts.in_place) return false;
  return has(kSequences, parts.base) || has(kBlank, parts.base) || has(kRandomFactories, parts.base) ||
         parts.base == "tril_indices" || parts.base == "triu_indices";
}

bool is_view(std::string_view name) {
  const OpName parts = parts_of(name);
  return !parts.in_place && has(kViews, parts.base);
}

bool writes_what_it_says(std::string_view name) {
  const auto steady = [&](Kernels kernels) {
    const RecomputeRule rule = recompute_rule_of(name, kernels);
    return rule == RecomputeRule::Plain || rule == RecomputeRule::Random;
  };
  return steady(Kernels::Processor) || steady(Kernels::Card) || is_view(name) || has(kReaders, parts_of(name).base);
}

bool is_heavy(std::string_view name) { return has(kHeavy, parts_of(name).base); }

}  // namespace ullage::plan
