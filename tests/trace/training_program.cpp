// SPDX-License-Identifier: Apache-2.0
#include "training_program.h"

namespace ullage::trace {
namespace {

const std::string kTorch = "/venv/lib/python3.11/site-packages/torch/";
const Frame kEmpty{"??", "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)", 0};
const Frame kMatmul{"??", "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)", 0};
const Frame kTo{"??", "at::_ops::to_dtype_layout::call(at::Tensor const&)", 0};
const Frame kNode{"??", "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)", 0};
const Frame kEngine{"??", "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)",
                    0};

const Frame kCall{kTorch + "nn/modules/module.py", "_call_impl", 1520};
const Frame kScript{"/home/me/train.py", "main", 20};

}  // namespace

StackId TrainingProgram::whole_stack(std::vector<Frame> native, const std::vector<Frame>& python) {
  if (!options_.native) native.clear();
  native.insert(native.end(), python.begin(), python.end());
  return RecordingBuilder::stack(native);
}

void TrainingProgram::build_model() {
  for (int i = 0; i < options_.layers; ++i) {
    const StackId made = whole_stack({kEmpty}, {{kTorch + "nn/modules/linear.py", "__init__", 100},
                                                {"/home/me/model.py", "__init__", 10},
                                                {"/home/me/train.py", "main", 5}});
    layers_.push_back({allocate(kParameter, made), {}, {}});
  }
}

// Returns the activations of each layer, then the loss.
std::vector<Address> TrainingProgram::forward(const char* function, std::uint64_t line) {
  const Bytes more = options_.grow ? Bytes{4096} * std::uint64_t(steps_) : Bytes{};
  std::vector<Address> kept;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const StackId layer = whole_stack({kMatmul}, {{"/home/me/layer.py", "forward", 7},
                                                  kCall,
                                                  {"/home/me/model.py", "forward", 30},
                                                  kCall,
                                                  {"/home/me/train.py", function, line}});
    const Address scratch = allocate(kActivation + more, layer);
    kept.push_back(allocate(kActivation + more, layer));
    free(scratch, layer);
  }
  const StackId head =
      whole_stack({kMatmul}, {{"/home/me/model.py", "forward", 31}, kCall, {"/home/me/train.py", function, line}});
  kept.push_back(allocate(2_MiB + more, head));
  kept.push_back(allocate(kLoss, whole_stack({kMatmul}, {{kTorch + "nn/functional.py", "cross_entropy", 3000},
                                                         {"/home/me/train.py", function, line + 1}})));
  return kept;
}

void TrainingProgram::backward(std::vector<Address>& activations) {
  // The threads of the autograd engine have no Python frames.
  const StackId node = whole_stack({kMatmul, kNode, kEngine}, {});
  std::optional<Address> flowing;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Address next = allocate(kActivation, node);
    if (flowing) free(*flowing, node);
    flowing = next;
    const Address made = allocate(kParameter, node);
    if (layers_[i].gradient) {
      free(made, node);  // it was added to the existing gradient
    } else {
      layers_[i].gradient = made;
    }
    free(activations[i], node);
  }
  free(*flowing, node);
  activations.erase(activations.begin(), activations.begin() + std::ptrdiff_t(layers_.size()));
}

void TrainingProgram::step_optimizer(int optimizer) {
  const Frame wrapper{kTorch + "optim/optimizer.py", "wrapper", 380};
  const Frame caller{"/home/me/train.py", "main", 40 + std::uint64_t(optimizer)};
  if (options_.annotations) annotate("Optimizer.step#Adam.step", true);
  for (Layer& one : layers_) {
    if (!one.momentum) {
      one.momentum = allocate(kParameter, whole_stack({kEmpty}, {{kTorch + "optim/adam.py", "_init_group", 120},
                                                                 {kTorch + "optim/adam.py", "step", 200},
                                                                 wrapper,
                                                                 caller}));
    }
    const StackId update = whole_stack({kMatmul}, {{kTorch + "optim/adam.py", "_single_tensor_adam", 300},
                                                   {kTorch + "optim/adam.py", "step", 210},
                                                   wrapper,
                                                   caller});
    free(allocate(kParameter, update), update);
  }
  if (options_.annotations) annotate("Optimizer.step#Adam.step", false);
  const StackId zero =
      whole_stack({}, {{kTorch + "optim/optimizer.py", "zero_grad", 900}, {"/home/me/train.py", "main", 50}});
  for (Layer& one : layers_) {
    free(*one.gradient, zero);
    one.gradient.reset();
  }
}

void TrainingProgram::train_step(int optimizer) {
  const StackId script = whole_stack({}, {kScript});
  const Address batch = allocate(kBatch, whole_stack({kTo}, {kScript}));
  std::vector<Address> kept = forward("main", 21 + 10 * std::uint64_t(optimizer));
  backward(kept);
  step_optimizer(optimizer);
  ++steps_;
  if (!options_.keep_loss) {
    for (const Address one : kept) free(one, script);
  }
  free(batch, script);
}

void TrainingProgram::evaluate_step(bool with_graph) {
  const Address batch = allocate(kBatch, whole_stack({kTo}, {{"/home/me/train.py", "validate", 60}}));
  std::vector<Address> kept = forward("validate", 61);
  const StackId script = whole_stack({}, {{"/home/me/train.py", "validate", 63}});
  if (!with_graph) {
    for (const Address one : kept) free(one, script);
  }
  free(batch, script);
}

}  // namespace ullage::trace
