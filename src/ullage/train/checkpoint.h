// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trades time for memory: torch.utils.checkpoint.checkpoint(use_reentrant=False) in C++. The tensors that autograd
// would save inside the function are not kept. When backward first needs one of them, the function runs once more.
//
//   x = checkpoint([&](const torch::Tensor& in) { return block->forward(in); }, x);
//   auto [y, z] = checkpoint(two_outputs, x, mask);     // results are returned as they are, whatever their type

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ullage::train {

struct CheckpointOptions {
  bool preserve_rng_state = true;  // the second run draws what the first drew
  bool early_stop = true;          // the second run ends as soon as it has made what backward needs
  bool determinism_check = true;   // shapes, types and devices of what both runs save are compared
};

namespace detail {

struct KeptTensor {
  std::size_t index;  // into the tensors of a call
};

template <class Input>
auto keep(Input&& input, std::vector<at::Tensor>& tensors) {
  if constexpr (std::is_same_v<std::decay_t<Input>, at::Tensor>) {
    tensors.push_back(std::forward<Input>(input));
    return KeptTensor{tensors.size() - 1};
  } else {
    return std::decay_t<Input>(std::forward<Input>(input));
  }
}

inline const at::Tensor& give(const KeptTensor& kept, const std::vector<at::Tensor>& tensors) {
  return tensors[kept.index];
}
template <class Other>
const Other& give(const Other& other, const std::vector<at::Tensor>&) {
  return other;
}

// While it lives, what autograd saves on this thread is not kept, but recomputed by `recompute` when it is needed.
class CheckpointedForward final {
 public:
  using Recompute = std::function<void(const std::vector<at::Tensor>&)>;
  CheckpointedForward(const CheckpointOptions& options, const std::vector<at::Tensor>& inputs, Recompute recompute);
  ~CheckpointedForward();
  CheckpointedForward(const CheckpointedForward&) = delete;
  CheckpointedForward& operator=(const CheckpointedForward&) = delete;

 private:
  class Frame;
  std::shared_ptr<Frame> frame_;
};

}  // namespace detail

// Returns function(inputs...). The function is kept until the graph is freed, and called again in backward, possibly on
// another thread. Whatever it refers to must live as long. Both runs must compute the same:
// - Inputs that are tensors (as arguments of their own, not inside a vector) are saved as autograd saves them: changing
//   one in place before backward gives torch's own error. Others are copied once.
// - With preserve_rng_state, the default generators of the CPU and of the inputs' devices begin both runs in the same
//   state. After the second run they get back the state from before it.
// - Autocast's state of the CPU, CUDA and the inputs' devices is always that of the first run.
// - Side effects happen twice: BatchNorm updates its running averages again, as under Python's checkpoint.
// Checkpoints nest. As in Python, saved-tensor hooks from outside the function see only its inputs, and not what it
// saves. Several backward passes over one graph each recompute. With gradients off the function is just called.
// Exceptions of the function pass through.
// Backward throws c10::Error if the second run saves fewer tensors than the first or, without early_stop, more. With
// determinism_check it also throws if a tensor that it saves has another shape, type or device.
template <class Function, class... Inputs>
requires std::invocable < std::decay_t<Function>
&, const std::decay_t<Inputs>&... >
       auto checkpoint(const CheckpointOptions& options, Function&& function, Inputs&&... inputs) {
  std::vector<at::Tensor> tensors;
  auto kept = std::tuple{detail::keep(std::forward<Inputs>(inputs), tensors)...};  // braces: from left to right
  // Shared, so that a function that can only be moved may be given.
  const auto shared = std::make_shared<std::decay_t<Function>>(std::forward<Function>(function));
  const auto call = [shared, kept = std::move(kept)](const std::vector<at::Tensor>& with) {
    return std::apply([&](const auto&... each) { return std::invoke(*shared, detail::give(each, with)...); }, kept);
  };
  if (!c10::GradMode::is_enabled()) return call(tensors);
  const detail::CheckpointedForward forward(options, tensors, [call](const auto& with) { (void)call(with); });
  return call(tensors);
}

template <class Function, class... Inputs>
requires std::invocable < std::decay_t<Function>
&, const std::decay_t<Inputs>&... > auto checkpoint(Function&& function, Inputs&&... inputs) {
  return checkpoint(CheckpointOptions{}, std::forward<Function>(function), std::forward<Inputs>(inputs)...);
}

}  // namespace ullage::train
