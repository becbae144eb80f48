// SPDX-License-Identifier: Apache-2.0
#include "random_training.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <tuple>
#include <utility>

namespace random_program {
namespace {

// A custom autograd function. It saves both inputs, and its backward computes tensors that autograd has not recorded.
class Twist final : public torch::autograd::Function<Twist> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& y) {
    context->save_for_backward({x, y});
    return x * y.sin();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const Tensor by_x = gradients[0] * saved[1].sin();
    return {by_x, gradients[0].mul(saved[0]).mul_(saved[1].cos())};
  }
};

// Switches autocast to bfloat16 on while it lives.
struct Autocast final {
  explicit Autocast(c10::Device device) : device_(device.type()) {
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const c10::DeviceType device_;
};

}  // namespace

void RandomTraining::any_op(bool watched) {
  switch (values_->below(19)) {
    case 0:
    case 1:
      return pointwise();
    case 2:
    case 3:
      return pointwise_in_place();
    case 4:
    case 5:
      return of_two();
    case 6:
      return part_in_place();
    case 7:
    case 8:
      return view();
    case 9:
      return several_outputs();
    case 10:
      return normalize();
    case 11:
      return window();
    case 12:
      return drop_out();
    case 13:
      return draw(watched);
    case 14:
      return product();
    case 15:
      return move();
    case 16:
      return reduce();
    case 17:
      return write_by_pointer();
    default:
      return custom();
  }
}

// Autograd saves the input or the output.
void RandomTraining::pointwise() {
  const Value x = values_->any();
  x.block->fixed = true;
  Value y{{}, x.kind};
  y.block->fixed = true;
  switch (values_->below(6)) {
    case 0:
      y.tensor = torch::relu(x.tensor);
      break;
    case 1:
      y.tensor = torch::tanh(x.tensor);
      break;
    case 2:
      y.tensor = torch::gelu(x.tensor);
      break;
    case 3:
      y.tensor = torch::sin(x.tensor);
      break;
    case 4:
      y.tensor = torch::leaky_relu(x.tensor, 0.1);
      break;
    default:
      y.tensor = torch::softmax(x.tensor, -1);
  }
  values_->put(y);
}

void RandomTraining::pointwise_in_place() {
  Value* x = values_->writable();
  if (x == nullptr) return pointwise();
  Tensor y = x->tensor;
  const Value other = values_->any(x->kind);
  // torch refuses an in-place op that reads the same storage at other strides.
  const Tensor read = other.block == x->block ? other.tensor.clone() : other.tensor;
  switch (values_->below(7)) {
    case 0:
      torch::relu_(y), x->block->fixed = true;
      break;
    case 1:
      torch::tanh_(y), x->block->fixed = true;
      break;
    case 2:
      y.mul_(0.9);
      break;
    case 3:
      y.add_(0.05);
      break;
    case 4:
      y.neg_();
      break;
    case 5:
      y.lerp_(read, 0.3);
      break;
    default:
      y.copy_(read);
  }
}

void RandomTraining::of_two() {
  const Value x = values_->any(), y = values_->any(x.kind);
  switch (values_->below(5)) {
    case 0:
      return values_->put(torch::lerp(x.tensor, y.tensor, 0.4), x.kind);
    case 1:
      return values_->put(x.tensor * 0.5 + y.tensor * 0.5, x.kind);
    case 2:
      values_->put_fixed(torch::tanh(x.tensor * y.tensor), x.kind);
      break;
    case 3:
      values_->put(torch::maximum(x.tensor, y.tensor), x.kind);
      break;
    default:
      values_->put(torch::where(x.tensor > 0, y.tensor, x.tensor * 0.5), x.kind);
  }
  x.block->fixed = y.block->fixed = true;
}

// Writes through a view of a storage. The bytes beside the view must stay.
void RandomTraining::part_in_place() {
  Value* x = values_->writable();
  if (x == nullptr) return of_two();
  const std::int64_t half = x->tensor.size(1) / 2;
  Tensor part = values_->chance(50) ? x->tensor.narrow(1, half / 2, half) : x->tensor.select(0, 0);
  switch (values_->below(4)) {
    case 0:
      part.zero_();
      break;
    case 1:
      part.mul_(0.5);
      break;
    case 2:
      part.normal_(0, 0.5);
      break;
    default:
      part.add_(0.125);
  }
}

void RandomTraining::view() {
  const Value x = values_->any();
  const std::int64_t half = sizes_.channels / 2;
  switch (x.kind == Kind::Full ? values_->below(5) : 2 + values_->below(3)) {
    case 0:
      return values_->put_view(x.tensor.narrow(1, 0, half), Kind::Half, x);
    case 1:
      return values_->put_view(x.tensor.slice(1, half, 2 * half), Kind::Half, x);
    case 2:
      return values_->put_view(x.tensor.transpose(2, 3), x.kind, x);
    case 3:
      return values_->put_view(x.tensor.permute({1, 0, 2, 3}).transpose(0, 1), x.kind, x);
    // A write through one of the two tensors would not count as a change of the other, so neither may be written.
    default:
      x.block->fixed = true;
      return values_->put_view(x.tensor.detach(), x.kind, x);
  }
}

void RandomTraining::several_outputs() {
  const Value x = values_->any(Kind::Full);
  x.block->fixed = true;
  switch (values_->below(5)) {
    case 0: {
      const std::vector<Tensor> two = x.tensor.split(sizes_.channels / 2, 1);
      values_->put_view(two[0], Kind::Half, x);
      return values_->put_view(two[1], Kind::Half, x);
    }
    case 1:
      return values_->put(torch::stack(x.tensor.unbind(0)), Kind::Full);
    case 2: {
      const auto [sorted, order] = x.tensor.sort(-1);
      return values_->put(sorted * 0.5 + order.to(torch::kFloat) * 0.001, Kind::Full);
    }
    case 3: {
      const auto [deviation, mean] = torch::std_mean(x.tensor, {1}, /*correction=*/1, /*keepdim=*/true);
      return values_->put_fixed(torch::tanh((x.tensor - mean) / (deviation + 1)), Kind::Full);
    }
    default: {
      const auto [most, where] = x.tensor.max(3, /*keepdim=*/true);
      return values_->put(x.tensor * 0.5 + most * 0.1 + where.to(torch::kFloat) * 0.001, Kind::Full);
    }
  }
}

void RandomTraining::normalize() {
  const Value x = values_->any(values_->chance(50) ? Kind::Full : Kind::Small);
  x.block->fixed = true;
  Tensor y;
  switch (values_->below(4)) {
    case 0:
    case 1:
      y = torch::batch_norm(x.tensor, scale_, shift_, mean_, variance_, /*training=*/true, 0.1, 1e-5, false);
      break;
    case 2:
      y = torch::layer_norm(x.tensor, {x.tensor.size(3)});
      break;
    default:
      y = torch::group_norm(x.tensor, 2, scale_, shift_);
  }
  values_->put_fixed(values_->chance(50) ? torch::tanh_(y) : torch::tanh(y), x.kind);
}

void RandomTraining::window() {
  if (values_->chance(40)) {
    const Tensor x = values_->any(Kind::Small).tensor;
    return values_->put(torch::upsample_nearest2d(x, {sizes_.side, sizes_.side}), Kind::Full);
  }
  const Value x = values_->any(Kind::Full);
  x.block->fixed = true;
  values_->put(values_->chance(70) ? torch::max_pool2d(x.tensor, {2, 2}) : torch::avg_pool2d(x.tensor, {2, 2}),
               Kind::Small);
}

void RandomTraining::drop_out() {
  const Value x = values_->any();
  if (values_->chance(50)) return values_->put(torch::dropout(x.tensor, 0.25, /*train=*/true), x.kind);
  values_->put(std::get<0>(torch::native_dropout(x.tensor, 0.25, /*train=*/true)), x.kind);
}

void RandomTraining::draw(bool watched) {
  const Value x = values_->any();
  switch (values_->below(watched ? 4 : 5)) {
    case 0:
      return values_->put(torch::lerp(x.tensor, torch::rand_like(x.tensor), 0.1), x.kind);
    case 1:
      return values_->put(blank(x.kind).uniform_(-1, 1, generator_), x.kind);
    case 2:
      return values_->put(torch::bernoulli(torch::sigmoid(x.tensor.detach())).mul_(0.5).add_(x.tensor), x.kind);
    case 3:
      return values_->put(
          x.tensor.index_select(0, torch::randperm(sizes_.batch, torch::TensorOptions(device_).dtype(torch::kLong))),
          x.kind);
    default:
      said_ += x.tensor.sum().item<double>();
  }
}

void RandomTraining::product() {
  const Value x = values_->any(values_->chance(70) ? Kind::Full : Kind::Half);
  x.block->fixed = true;
  Tensor y;
  std::optional<Autocast> lower;
  if (values_->chance(20)) lower.emplace(device_);
  if (x.kind == Kind::Half) {
    y = torch::conv2d(x.tensor, weight1_);
  } else {
    switch (values_->below(4)) {
      case 0:
        y = torch::conv2d(x.tensor, weight3_, bias_, 1, 1);
        break;
      case 1:
        y = torch::conv2d(x.tensor, each_channel_, bias_, 1, 1, 1, sizes_.channels);
        break;
      case 2:
        y = torch::matmul(x.tensor, x.tensor.transpose(2, 3)) * (1.0 / static_cast<double>(sizes_.side));
        break;
      default: {
        const Tensor rows = x.tensor.reshape({-1, sizes_.side * sizes_.side});
        y = torch::mm(rows, linear_).unsqueeze(1).reshape({sizes_.batch, sizes_.channels, 1, sizes_.side}) + x.tensor;
      }
    }
  }
  lower.reset();
  values_->put_fixed(torch::tanh(y.to(torch::kFloat)), x.kind);
}

void RandomTraining::move() {
  const Value x = values_->any();
  switch (values_->below(5)) {
    case 0:
      return values_->put(x.tensor.flip({2}), x.kind);
    case 1:
      return values_->put(x.tensor.roll({1}, {3}).contiguous(), x.kind);
    case 2:
      return values_->put(x.tensor.clone(), x.kind);
    case 3:
      return values_->put((x.tensor.to(torch::kDouble) * 0.75).to(torch::kFloat), x.kind);
    default: {
      const Tensor a = values_->any(Kind::Half).tensor, b = values_->any(Kind::Half).tensor;
      values_->put(torch::cat({a, b}, 1), Kind::Full);
    }
  }
}

void RandomTraining::reduce() {
  const Value x = values_->any();
  x.block->fixed = true;
  if (values_->chance(50)) return values_->put(x.tensor * torch::sigmoid(x.tensor.mean({2, 3}, true)), x.kind);
  values_->put_fixed(torch::tanh(x.tensor.cumsum(3) * 0.1), x.kind);
}

// Writes by pointer, without an op, as programs do for labels and pictures.
void RandomTraining::write_by_pointer() {
  const Value x = values_->any();
  Tensor paper = blank(x.kind, torch::kCPU);
  auto* number = static_cast<float*>(paper.mutable_data_ptr());
  for (std::int64_t i = 0; i < paper.numel(); ++i) number[i] = static_cast<float>((i * 37 + 11) % 101) * 0.01f;
  paper = paper.to(device_);
  values_->put(torch::lerp(x.tensor, paper, 0.2), x.kind);
  if (values_->chance(30)) values_->put(paper, x.kind);
}

void RandomTraining::custom() {
  const Value x = values_->any(), y = values_->any(x.kind);
  x.block->fixed = y.block->fixed = true;
  values_->put_fixed(torch::tanh(Twist::apply(x.tensor, y.tensor)), x.kind);
}

}  // namespace random_program
