// SPDX-License-Identifier: Apache-2.0
// The LSTM and GRU cells that torch calls on every card and for which the CPU has no kernel. They are made of other
// ops on the card, with the formulas of ATen/native/cuda/RNN.cu. The bits are not the CPU's, which adds the biases in
// another order.

#include "card_parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

namespace card_torch {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool has(const OptionalTensor& tensor) { return tensor && tensor->defined(); }
Tensor plus(const Tensor& gates, const OptionalTensor& bias) { return has(bias) ? gates + *bias : gates; }
Tensor through_sigmoid(const Tensor& gradient, const Tensor& y) { return gradient * (1 - y) * y; }
Tensor through_tanh(const Tensor& gradient, const Tensor& y) { return gradient * (1 - y * y); }
Tensor summed(const Tensor& gradient, bool wanted) { return wanted ? gradient.sum(0) : Tensor(); }

// Returns hy, cy, and for backward the four gates after their activation functions.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const std::vector<Tensor> gates =
      (plus(input_gates, input_bias) + plus(hidden_gates, hidden_bias)).chunk(4, /*dim=*/1);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  const Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy, const OptionalTensor& grad_cy,
                                                      const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
  if (!has(grad_hy) && !has(grad_cy)) return {};
  const std::vector<Tensor> gates = workspace.chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor by_hy = has(grad_hy) ? *grad_hy : at::zeros_like(cy);
  const Tensor shown = cy.tanh();
  const Tensor by_cy = through_tanh(by_hy * out, shown) + (has(grad_cy) ? *grad_cy : at::zeros_like(cy));
  const Tensor by_gates = at::cat({through_sigmoid(by_cy * cell, in), through_sigmoid(by_cy * cx, forget),
                                   through_tanh(by_cy * in, cell), through_sigmoid(by_hy * shown, out)},
                                  1);
  return {by_gates, by_cy * forget, summed(by_gates, has_bias)};
}

// Returns hy, and for backward the reset, update and new gates, hx, and the hidden part of the new gate.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const std::vector<Tensor> input = plus(input_gates, input_bias).chunk(3, 1);
  const std::vector<Tensor> hidden = plus(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (input[0] + hidden[0]).sigmoid(), update = (input[1] + hidden[1]).sigmoid();
  const Tensor fresh = (input[2] + reset * hidden[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  const std::vector<Tensor> kept = workspace.chunk(5, 1);
  const Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3], &hidden = kept[4];
  const Tensor by_update = through_sigmoid(grad_hy * (hx - fresh), update);
  const Tensor by_fresh = through_tanh(grad_hy * (1 - update), fresh);
  const Tensor by_reset = through_sigmoid(by_fresh * hidden, reset);
  const Tensor by_input = at::cat({by_reset, by_update, by_fresh}, 1);
  const Tensor by_hidden = at::cat({by_reset, by_update, by_fresh * reset}, 1);
  return {by_input, by_hidden, grad_hy * update, summed(by_input, has_bias), summed(by_hidden, has_bias)};
}

}  // namespace

void register_recurrent() {
  static auto* const aten =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten->impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  aten->impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  aten->impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  aten->impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

}  // namespace card_torch
