// SPDX-License-Identifier: Apache-2.0
#include "card_ops.h"

#include <torch/fft.h>
#include <torch/nn.h>

#include <tuple>

namespace card_torch {

namespace F = torch::nn::functional;

const std::vector<Op>& differentiable_ops() {
  static const std::vector<Op> ops{
      {"abs", [](auto& x, auto&) { return x.abs(); }},
      {"adaptive_pool",
       [](auto& x, auto&) {
         return torch::adaptive_avg_pool2d(x, {3, 2});
       }},
      {"addmm", [](auto& x, auto& y) { return torch::addmm(x[0][0], x[0][1], y[0][2], 0.5, 2); }},
      {"avg_pool",
       [](auto& x, auto&) {
         return torch::avg_pool2d(x, {2, 2});
       }},
      {"baddbmm", [](auto& x, auto& y) { return torch::baddbmm(x[0], y[0], x[1]); }},
      {"batch_norm", [](auto& x, auto&) { return torch::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); }},
      {"bce", [](auto& x, auto& y) { return F::binary_cross_entropy_with_logits(x, y.detach().sigmoid()); }},
      {"cat_stack",
       [](auto& x, auto& y) {
         return torch::cat({torch::stack({x, y}), torch::stack({y, y})}, 2);
       }},
      {"clamp", [](auto& x, auto&) { return x.clamp(-0.5, 0.5); }},
      {"complex", [](auto& x, auto& y) { return torch::view_as_real(torch::complex(x, y).conj() * 2); }},
      {"conj_view",
       [](auto& x, auto& y) { return torch::real(torch::complex(x, y).mH().matmul(torch::complex(y, x))); }},
      {"conv1d", [](auto& x, auto& y) { return torch::conv1d(x[0], y[0].narrow(2, 0, 3)); }},
      {"conv2d", [](auto& x, auto& y) { return torch::conv2d(x, y.narrow(2, 0, 3).narrow(3, 0, 3), {}, 1, 1); }},
      {"conv3d", [](auto& x, auto& y) { return torch::conv3d(x.unsqueeze(0), y.narrow(1, 0, 2).unsqueeze(0)); }},
      {"ctc_loss",
       [](auto& x, auto&) {
         const Tensor said = torch::ones({6, 2}, x.options().dtype(torch::kLong).requires_grad(false));
         return torch::ctc_loss(x[0].log_softmax(-1), said, std::vector<std::int64_t>(6, 4),
                                std::vector<std::int64_t>(6, 2));
       }},
      {"cumsum", [](auto& x, auto&) { return x.cumsum(1); }},
      {"diagonal", [](auto& x, auto&) { return x.diagonal(0, 2, 3); }},
      {"einsum",
       [](auto& x, auto& y) {
         return torch::einsum("abij,abkj->aik", {x, y});
       }},
      {"expand",
       [](auto& x, auto& y) {
         return x.mean({2, 3}, true).expand_as(y) * y;
       }},
      {"fft", [](auto& x, auto&) { return torch::fft::rfft(x).abs(); }},
      {"flip_roll",
       [](auto& x, auto&) {
         return x.flip({1, 3}).roll({1, 2}, {0, 2});
       }},
      {"gather", [](auto& x, auto& y) { return x.gather(3, y.detach().argsort(std::int64_t{3})); }},
      {"gelu", [](auto& x, auto&) { return torch::gelu(x); }},
      {"grid",
       [](auto& x, auto& y) {
         return F::grid_sample(x, y.narrow(1, 0, 2).permute({0, 2, 3, 1}).tanh(),
                               F::GridSampleFuncOptions().align_corners(false));
       }},
      {"group_norm", [](auto& x, auto&) { return torch::group_norm(x, 2); }},
      {"index", [](auto& x, auto& y) { return x.index({y.detach() > 0}); }},
      {"index_add",
       [](auto& x, auto& y) {
         return x.index_add(1, torch::tensor({1, 1, 3}, x.device()), y.narrow(1, 0, 3));
       }},
      {"index_put", [](auto& x, auto& y) { return x.clone().index_put_({y.detach() > 0}, y.sum()); }},
      {"index_select",
       [](auto& x, auto&) {
         return x.index_select(3, torch::tensor({5, 0, 0}, x.device()));
       }},
      {"in_place", [](auto& x, auto& y) { return x.clone().transpose_(2, 3).mul_(y).add_(1).sub_(y).relu_(); }},
      {"interpolate",
       [](auto& x, auto&) {
         return torch::upsample_bicubic2d(x, std::vector<std::int64_t>{9, 5}, true);
       }},
      {"kthvalue", [](auto& x, auto&) { return std::get<0>(x.kthvalue(2, 3)); }},
      {"layer_norm", [](auto& x, auto& y) { return torch::layer_norm(x, {6}, y[0][0][0], y[0][0][1]); }},
      {"linalg",
       [](auto& x, auto&) { return torch::linalg_inv(x + 9 * torch::eye(6, x.options().requires_grad(false))); }},
      {"log_softmax", [](auto& x, auto&) { return x.log_softmax(1); }},
      {"logsumexp",
       [](auto& x, auto&) {
         return x.logsumexp({1, 2});
       }},
      {"masked", [](auto& x, auto& y) { return x.masked_fill(y > 0, 3).masked_select(x.detach() > 0); }},
      {"matmul", [](auto& x, auto& y) { return x.matmul(y.transpose(2, 3)).matmul(x[0][0][0]); }},
      {"max", [](auto& x, auto& y) { return std::get<0>(x.max(2)) + torch::maximum(x, y).amax({2}); }},
      {"max_pool",
       [](auto& x, auto&) {
         return torch::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
       }},
      {"norm",
       [](auto& x, auto& y) {
         return x.norm() + torch::linalg_vector_norm(y, 3, {1, 2});
       }},
      {"pad",
       [](auto& x, auto&) {
         return F::pad(F::pad(x, F::PadFuncOptions({1, 2, 0, 1})),
                       F::PadFuncOptions({2, 2, 1, 1}).mode(torch::kReflect));
       }},
      {"permute",
       [](auto& x, auto&) {
         return x.permute({3, 0, 2, 1}).contiguous().view({6, -1});
       }},
      {"pixel_shuffle", [](auto& x, auto&) { return torch::pixel_shuffle(x, 2); }},
      {"pow", [](auto& x, auto& y) { return x.pow(3) + torch::pow(2, y) + y.abs().pow(x); }},
      {"prelu", [](auto& x, auto& y) { return torch::prelu(x, y[0].narrow(1, 0, 1).flatten().narrow(0, 0, 4)); }},
      {"prod_var", [](auto& x, auto&) { return x.prod(3) + x.var({3}) + std::get<0>(torch::std_mean(x, {3})); }},
      {"repeat",
       [](auto& x, auto&) {
         return x.repeat({2, 1, 1, 2}).repeat_interleave(2, 1);
       }},
      {"scatter", [](auto& x, auto& y) { return x.scatter_add(3, y.detach().argsort(std::int64_t{3}), y); }},
      {"select_scatter", [](auto& x, auto& y) { return x.select_scatter(y[0], 0, 1).slice_scatter(y, 1, 0, 4); }},
      {"sort", [](auto& x, auto&) { return std::get<0>(x.sort(3)) + std::get<0>(x.topk(6, 2)); }},
      {"split", [](auto& x, auto&) { return x.split(2, 1)[1] + x.unbind(1)[0].unsqueeze(1) + x.chunk(2, 1)[0]; }},
      {"to",
       [](auto& x, auto& y) {
         return x.to(torch::kDouble) * y.to(torch::kDouble) + y.to(torch::kHalf).to(torch::kDouble);
       }},
      {"there_and_back", [](auto& x, auto&) { return x.cpu().mul(2).to(x.device()); }},
      {"tril", [](auto& x, auto&) { return x.tril(-1) + x.triu(1); }},
      {"unfold",
       [](auto& x, auto& y) {
         return F::unfold(x, F::UnfoldFuncOptions({2, 2})).sum() + y.unfold(3, 3, 2);
       }},
      {"where",
       [](auto& x, auto& y) {
         return torch::where(x > y, x, torch::zeros({}, x.device())) + torch::where(y > 0, y, 0.5);
       }},
      {"addcmul_lerp", [](auto& x, auto& y) { return torch::addcmul(x, x, y, 0.5).lerp(y, 0.25).addcdiv(x, y.exp()); }},
      {"bilinear", [](auto& x, auto& y) { return torch::bilinear(x[0][0], y[0][1], x[1].narrow(0, 0, 3)); }},
      {"cdist", [](auto& x, auto& y) { return torch::cdist(x[0], y[0]); }},
      {"huber_smooth",
       [](auto& x, auto& y) { return F::huber_loss(x, y.detach()) + F::smooth_l1_loss(x, y.detach()); }},
      {"nll2d",
       [](auto& x, auto& y) { return F::cross_entropy(x, y.detach().sum(1).abs().toType(torch::kLong).remainder(4)); }},
  };
  return ops;
}

}  // namespace card_torch
