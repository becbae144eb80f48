// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/taped_op.h"

#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/mapped_files.h"
#include "ullage/runtime/ops/op_info.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/List.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/strides.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cmath>

namespace ullage::runtime {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// A tensor with any of these is more than its bytes and its geometry.
constexpr DispatchKeySet kNotPlain =
    DispatchKeySet({DispatchKey::Python, DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor,
                    DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper, DispatchKey::Functionalize,
                    DispatchKey::NestedTensor});

bool is_plain(const at::Tensor& tensor) {
  // A wrapped number is on the CPU even in an op of a card, and nobody writes to it.
  const bool here =
      tensor.device().type() == followed_device().type() || tensor.unsafeGetTensorImpl()->is_wrapped_number();
  return tensor.layout() == c10::kStrided && here && !tensor.key_set().has_any(kNotPlain) && !tensor.is_quantized() &&
         !tensor.is_inference() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

// Is it a weight that is mapped from a file, and does the op only read it?
bool is_readable_weight(const OpCall& call, const c10::StorageImpl* storage) {
  const auto use = std::ranges::find(call.inputs, storage, [](const StorageUse& one) { return one.storage.get(); });
  return use != call.inputs.end() && !use->written && lies_in_private_file(use->storage);
}

}  // namespace

// ---- geometry

Geometry Geometry::of(const at::Tensor& tensor) {
  Geometry made;
  made.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  made.strides.assign(tensor.strides().begin(), tensor.strides().end());
  made.offset = tensor.storage_offset();
  made.dtype = tensor.dtype();
  made.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  return made;
}

bool Geometry::is_dense() const {
  const at::IntArrayRef all(sizes.data(), sizes.size());
  const at::IntArrayRef apart(strides.data(), strides.size());
  return apart == at::IntArrayRef(c10::contiguous_strides(all)) ||
         (all.size() == 4 && apart == at::IntArrayRef(c10::get_channels_last_strides_2d(all)));
}

// Makes the tensor without dispatching an op.
at::Tensor Geometry::on(const StoragePtr& storage) const {
  const DispatchKey device = storage->device_type() == c10::kCPU ? DispatchKey::CPU : DispatchKey::CUDA;
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), DispatchKeySet(device), dtype);
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(sizes, strides, offset);
  if (wrapped_number) impl.set_wrapped_number(true);
  return tensor;
}

// ---- capture

std::unique_ptr<TapedOp> TapedOp::capture(const OpCall& call, std::span<const StorageUse> inputs,
                                          plan::RecomputeRule how) {
  if (how == plan::RecomputeRule::Never) return nullptr;
  std::unique_ptr<TapedOp> taped(new TapedOp);
  taped->op_ = *call.handle;
  taped->arguments_.reserve(call.arguments.size());
  for (const c10::IValue& value : call.arguments) {
    if (!taped->take(call, value, inputs)) return nullptr;
  }
  if (how == plan::RecomputeRule::BatchNorm) taped->leave_statistics_out();
  if (how == plan::RecomputeRule::Random) taped->keep_generator();
  taped->find_needed(inputs.size());
  std::fegetenv(&taped->floats_);
  taped->grad_mode_ = c10::GradMode::is_enabled();
  taped->onednn_ = at::globalContext().userEnabledMkldnn();
  taped->threads_ = at::get_num_threads();
  return taped;
}

bool TapedOp::take(const OpCall& call, const c10::IValue& value, std::span<const StorageUse> inputs) {
  using Kind = Argument::Kind;
  Argument argument;
  bool understood = true;
  const auto add = [&](const at::Tensor& tensor) {
    understood = understood && take_part(call, tensor, inputs, argument);
  };
  if (value.isTensor()) {
    argument.kind = Kind::Tensor;
    add(value.toTensor());
  } else if (value.isTensorList()) {
    argument.kind = Kind::List;
    for (const at::Tensor& tensor : value.toTensorVector()) add(tensor);
  } else if (value.isOptionalTensorList()) {
    argument.kind = Kind::OptionalList;
    for (const c10::IValue& element : value.toListRef()) add(element.isTensor() ? element.toTensor() : at::Tensor());
  } else {
    bool holds_tensors = value.isStorage() || value.isObject() || value.isCapsule();
    each_tensor(value, [&](const at::Tensor&) { holds_tensors = true; });
    if (holds_tensors) return false;
    argument.value = value;
  }
  arguments_.push_back(std::move(argument));
  return understood;
}

bool TapedOp::take_part(const OpCall& call, const at::Tensor& tensor, std::span<const StorageUse> inputs,
                        Argument& argument) {
  Part part;
  if (tensor.defined()) {
    if (!is_plain(tensor)) return false;
    c10::StorageImpl* const storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    for (std::size_t i = 0; i < inputs.size() && !part.input; ++i) {
      if (inputs[i].storage.get() == storage) part.input = i;
    }
    if (part.input) {
      part.geometry = Geometry::of(tensor);
    } else {
      part.other = tensor;
      part.mapped = bytes_of(*tensor.unsafeGetTensorImpl()) != Address{};
      if (part.mapped && !is_readable_weight(call, storage)) return false;  // nobody knows who else writes to it
    }
    if (part.input || part.mapped) {
      part.counter = tensor.unsafeGetTensorImpl()->version_counter();
      part.version = part.counter.current_version();
    }
  }
  argument.parts.push_back(std::move(part));
  return true;
}

// In training a batch norm writes its running statistics although its schema does not say so. It must not write them
// when it is run again, so they are left out. Its outputs do not depend on them.
void TapedOp::leave_statistics_out() {
  const auto& schema = op_->schema();
  const auto position = [&](const char* name) {
    const std::optional<int> found = schema.argumentIndexWithName(name);
    return found ? static_cast<std::size_t>(*found) : arguments_.size();
  };
  const std::size_t training = position("training");
  if (training >= arguments_.size() || !arguments_[training].value.toBool()) return;
  for (const char* name : {"running_mean", "running_var"}) {
    if (const std::size_t at = position(name); at < arguments_.size()) arguments_[at].parts = {Part{}};
  }
}

void TapedOp::keep_generator() {
  const auto& schema = op_->schema();
  at::Generator drawn_from = default_generator();
  if (const std::optional<int> found = schema.argumentIndexWithName("generator")) {
    generator_at_ = static_cast<std::size_t>(*found);
    const c10::IValue& given = arguments_[*generator_at_].value;
    if (given.isGenerator()) drawn_from = given.toGenerator();
  }
  generator_.emplace(drawn_from);
}

// True only for what probe_kernels() has tried: float32, and dense tensors (contiguous or channels-last).
bool TapedOp::can_recompute_batch_norm() const {
  if (arguments_.size() < 3 || output_.sizes.size() < 2 || !output_.is_dense()) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (arguments_[i].kind != Argument::Kind::Tensor) return false;
    const Part& part = arguments_[i].parts[0];
    if (part.other.defined()) return false;
    if (!part.input) {
      if (i == 0) return false;
      continue;
    }
    if (!part.geometry.is_dense()) return false;
    if (part.geometry.dtype != caffe2::TypeMeta::Make<float>()) return false;
    if (i > 0 && (part.geometry.strides.size() != 1 || part.geometry.strides[0] != 1)) return false;
  }
  return true;
}

void TapedOp::find_needed(std::size_t inputs) {
  needed_.assign(inputs, false);
  for (const Argument& argument : arguments_) {
    for (const Part& part : argument.parts) {
      if (part.input) needed_[*part.input] = true;
    }
  }
}

bool TapedOp::unchanged(std::size_t i) const {
  for (const Argument& argument : arguments_) {
    for (const Part& part : argument.parts) {
      if (part.input == i && part.counter.current_version() != part.version) return false;
    }
  }
  return true;
}

bool TapedOp::mapped_stand() const {
  for (const Argument& argument : arguments_) {
    for (const Part& part : argument.parts) {
      if (part.mapped && part.counter.current_version() != part.version) return false;
    }
  }
  return true;
}

std::vector<const c10::StorageImpl*> TapedOp::mapped() const {
  std::vector<const c10::StorageImpl*> found;
  for (const Argument& argument : arguments_) {
    for (const Part& part : argument.parts) {
      if (part.mapped) found.push_back(part.other.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
    }
  }
  return found;
}

bool TapedOp::made_stands() const {
  return std::ranges::all_of(made_, [](const auto& one) { return one.first.current_version() == one.second; });
}

void TapedOp::note_outputs(std::span<const c10::IValue> outputs) {
  for (const c10::IValue& output : outputs) {
    each_tensor(output, [&](const at::Tensor& tensor) {
      if (tensor.is_inference()) return;
      const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
      made_.emplace_back(counter, counter.current_version());
    });
  }
  if (!outputs.empty() && outputs[0].isTensor() && outputs[0].toTensor().defined()) {
    output_ = Geometry::of(outputs[0].toTensor());
  }
}

Bytes TapedOp::bytes() const {
  Bytes sum{sizeof(TapedOp) + (generator_ ? KeptGenerator::kBytes.count : 0)};
  for (const Argument& argument : arguments_) sum += Bytes{sizeof(Argument) + argument.parts.size() * sizeof(Part)};
  return sum;
}

// ---- running again

class TapedOp::Surroundings final {
 public:
  explicit Surroundings(const TapedOp& op)
      : grad_(op.grad_mode_), no_autocast_(c10::autocast_dispatch_keyset), no_python_(DispatchKey::Python) {
    std::fegetenv(&floats_);
    std::fesetenv(&op.floats_);
    if (onednn_ != op.onednn_) at::globalContext().setUserEnabledMkldnn(op.onednn_);
    if (threads_ != op.threads_) at::set_num_threads(op.threads_);
  }
  ~Surroundings() {
    if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
    if (at::globalContext().userEnabledMkldnn() != onednn_) at::globalContext().setUserEnabledMkldnn(onednn_);
    std::fesetenv(&floats_);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

 private:
  const UnseenOps unseen_;
  const at::AutoDispatchBelowADInplaceOrView below_autograd_;
  const c10::AutoGradMode grad_;  // kernels look at it: a recurrent layer makes its workspace only if it is on
  const c10::impl::ExcludeDispatchKeyGuard no_autocast_;
  const c10::impl::ExcludeDispatchKeyGuard no_python_;
  const bool onednn_ = at::globalContext().userEnabledMkldnn();
  const int threads_ = at::get_num_threads();
  std::fenv_t floats_{};
};

at::Tensor TapedOp::tensor(const Part& part, std::span<const StoragePtr> inputs) const {
  return part.input ? part.geometry.on(inputs[*part.input]) : part.other;
}

c10::IValue TapedOp::value(const Argument& argument, std::span<const StoragePtr> inputs) const {
  using Kind = Argument::Kind;
  if (argument.kind == Kind::Value) return argument.value;
  if (argument.kind == Kind::Tensor) return tensor(argument.parts[0], inputs);
  if (argument.kind == Kind::List) {
    c10::List<at::Tensor> list;
    for (const Part& part : argument.parts) list.push_back(tensor(part, inputs));
    return list;
  }
  c10::List<std::optional<at::Tensor>> list;
  for (const Part& part : argument.parts) {
    const at::Tensor one = tensor(part, inputs);
    list.push_back(one.defined() ? std::optional(one) : std::nullopt);
  }
  return list;
}

std::vector<StoragePtr> TapedOp::run(std::span<const StoragePtr> inputs) const {
  const Surroundings as_then(*this);
  torch::jit::Stack stack;
  for (const Argument& argument : arguments_) stack.push_back(value(argument, inputs));
  std::optional<KeptGenerator::InPlace> in_its_place;
  if (generator_ && generator_at_) {
    stack[*generator_at_] = generator_->again();
  } else if (generator_) {
    in_its_place.emplace(*generator_);
  }
  op_->callBoxed(stack);
  std::vector<StoragePtr> made;
  const auto seen = [&](const c10::StorageImpl* storage) {
    for (const StoragePtr& one : inputs) {
      if (one.get() == storage) return true;
    }
    for (const StoragePtr& one : made) {
      if (one.get() == storage) return true;
    }
    return false;
  };
  for (const c10::IValue& output : stack) {
    each_tensor(output, [&](const at::Tensor& one) {
      const std::optional<StorageUse> use = storage_use(*one.unsafeGetTensorImpl());
      if (use && !seen(use->storage.get())) made.push_back(use->storage);
    });
  }
  return made;
}

// For each channel y = x * a + b, where a = inverse deviation * weight, and b = bias - mean * a in one rounding.
// Torch's kernel does the same once it has the statistics (probed: kernel_facts.h).
StoragePtr TapedOp::recompute_batch_norm(std::span<const StoragePtr> inputs) const {
  const Surroundings as_then(*this);
  const auto floats = [](const at::Tensor& tensor) { return static_cast<const float*>(tensor.const_data_ptr()); };
  const at::Tensor x = tensor(arguments_[0].parts[0], inputs);
  const at::Tensor weight = tensor(arguments_[1].parts[0], inputs);
  const at::Tensor bias = tensor(arguments_[2].parts[0], inputs);
  const float* mean = static_cast<const float*>(inputs[inputs.size() - 2]->data());
  const float* deviation = static_cast<const float*>(inputs[inputs.size() - 1]->data());
  const std::int64_t channels = x.size(1);
  const at::Tensor a = at::empty({channels}, at::kFloat), b = at::empty({channels}, at::kFloat);
  float* alpha = a.mutable_data_ptr<float>();
  float* beta = b.mutable_data_ptr<float>();
  for (std::int64_t c = 0; c < channels; ++c) {
    alpha[c] = weight.defined() ? deviation[c] * floats(weight)[c] : deviation[c];
    beta[c] = std::fma(-mean[c], alpha[c], bias.defined() ? floats(bias)[c] : 0.0f);
  }
  std::vector<std::int64_t> one_per_channel(static_cast<std::size_t>(x.dim()), 1);
  one_per_channel[1] = channels;
  at::Tensor y = at::empty_strided(output_.sizes, output_.strides, x.options());
  at::addcmul_out(y, b.view(one_per_channel), x, a.view(one_per_channel));
  return storage_use(*y.unsafeGetTensorImpl())->storage;
}

}  // namespace ullage::runtime
