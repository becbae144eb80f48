// SPDX-License-Identifier: Apache-2.0
#include "dcgan/state.h"

#include "program/sha256.h"

#include <ATen/CPUGeneratorImpl.h>

#include <memory>
#include <mutex>

namespace ullage::dcgan {
namespace {

using torch::optim::AdamParamState;

constexpr const char* kFixedNoise = "fixed_noise";
constexpr std::size_t kDifferencesSaid = 3;

void add_network(std::vector<NamedTensor>& out, const std::string& prefix, const torch::nn::Module& network) {
  for (const auto& item : network.named_parameters()) out.push_back({prefix + item.key(), item.value()});
  for (const auto& item : network.named_buffers()) out.push_back({prefix + item.key(), item.value()});
}

// Returns Adam's state for a parameter; null before its first step.
AdamParamState* state_of_parameter(const torch::optim::Adam& adam, const torch::Tensor& parameter) {
  const auto found = adam.state().find(parameter.unsafeGetTensorImpl());
  return found == adam.state().end() ? nullptr : static_cast<AdamParamState*>(found->second.get());
}

void add_optimizer(std::vector<NamedTensor>& out, const std::string& prefix, const torch::nn::Module& network,
                   const torch::optim::Adam& adam) {
  for (const auto& item : network.named_parameters()) {
    const AdamParamState* state = state_of_parameter(adam, item.value());
    if (state == nullptr) continue;
    const std::string name = prefix + item.key();
    out.push_back({name + "/exp_avg", state->exp_avg()});
    out.push_back({name + "/exp_avg_sq", state->exp_avg_sq()});
    out.push_back({name + "/step", torch::scalar_tensor(state->step(), torch::kInt64)});
  }
}

// Stores fractions as float32, as the scaler itself holds its scale, and counts as int64.
void add_scaler(std::vector<NamedTensor>& out, const std::string& prefix, const train::GradScaler& scaler) {
  for (const auto& [name, value] : scaler.state_dict()) {
    const bool count = name == "growth_interval" || name == "_growth_tracker";
    out.push_back({prefix + name, torch::scalar_tensor(value, count ? torch::kInt64 : torch::kFloat32)});
  }
}

Status set_scaler(train::GradScaler& scaler, const std::string& prefix,
                  const std::map<std::string, torch::Tensor>& read) {
  train::GradScaler::State state = scaler.state_dict();
  for (auto& [name, value] : state) value = read.at(prefix + name).item<double>();
  return scaler.load_state_dict(state);
}

void set_optimizer_steps(torch::optim::Adam& adam, const std::string& prefix, const torch::nn::Module& network,
                         const std::map<std::string, torch::Tensor>& read) {
  for (const auto& item : network.named_parameters()) {
    const torch::Tensor& step = read.at(prefix + item.key() + "/step");
    state_of_parameter(adam, item.value())->step(step.item<std::int64_t>());
  }
}

read::Dtype dtype_of(const torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kFloat32) return read::Dtype::F32;
  if (tensor.scalar_type() == torch::kInt64) return read::Dtype::I64;
  ULLAGE_CHECK(tensor.scalar_type() == torch::kUInt8, "state of a type that checkpoints know");
  return read::Dtype::U8;
}

torch::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const torch::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

// Describes the first few differences between the file and `wanted`; "" if there are none.
std::string differences(const std::vector<NamedTensor>& wanted, const program::SafetensorsFile& file) {
  std::vector<std::string> found;
  std::size_t shared = 0;
  for (const NamedTensor& item : wanted) {
    const program::TensorShape shape = shape_of(item.tensor);
    const auto entry = file.entries().find(item.name);
    if (entry == file.entries().end()) {
      found.push_back(item.name + " is missing in the checkpoint, " + to_string(shape) + " here");
      continue;
    }
    ++shared;
    if (entry->second.shape == shape) continue;
    found.push_back(item.name + " is " + to_string(entry->second.shape) + " in the checkpoint, " + to_string(shape) +
                    " here");
  }
  if (const std::size_t more = file.entries().size() - shared; more > 0) {
    found.push_back(std::to_string(more) + " tensors of the checkpoint have no place here");
  }
  std::string text;
  for (std::size_t i = 0; i < found.size() && i < kDifferencesSaid; ++i) text += (i > 0 ? "; " : "") + found[i];
  if (found.size() > kDifferencesSaid) text += "; and " + std::to_string(found.size() - kDifferencesSaid) + " more";
  return text;
}

}  // namespace

std::vector<NamedTensor> state_of(const Trainer& trainer) {
  std::vector<NamedTensor> all;
  add_network(all, "netG/", *trainer.netG);
  add_network(all, "netD/", *trainer.netD);
  add_optimizer(all, "optimizerG/", *trainer.netG, trainer.optimizerG);
  add_optimizer(all, "optimizerD/", *trainer.netD, trainer.optimizerD);
  add_scaler(all, "scalerG/", *trainer.scalerG);
  add_scaler(all, "scalerD/", *trainer.scalerD);
  all.push_back({"generator", generator_state()});
  all.push_back({kFixedNoise, trainer.fixed_noise});
  return all;
}

program::TensorShape shape_of(const torch::Tensor& tensor) { return {dtype_of(tensor), tensor.sizes().vec()}; }

std::string state_sha256(const Trainer& trainer) {
  program::Sha256 digest;
  for (const NamedTensor& item : state_of(trainer)) {
    if (item.name == kFixedNoise) continue;
    const program::TensorShape shape = shape_of(item.tensor);
    ULLAGE_CHECK(item.tensor.is_contiguous(), "state is contiguous");
    digest.update(item.name + " " + to_string(shape) + "\n");
    digest.update(item.tensor.const_data_ptr(), size_of(shape));
  }
  return digest.finish();
}

std::vector<program::TensorToWrite> to_write(const std::vector<NamedTensor>& tensors) {
  std::vector<program::TensorToWrite> list;
  for (const NamedTensor& item : tensors) {
    ULLAGE_CHECK(item.tensor.is_contiguous(), "state is contiguous");
    list.push_back({item.name, shape_of(item.tensor), item.tensor.const_data_ptr()});
  }
  return list;
}

Status restore_state(Trainer& trainer, const program::SafetensorsFile& file) {
  make_adam_state(trainer.optimizerG);
  make_adam_state(trainer.optimizerD);
  const std::vector<NamedTensor> all = state_of(trainer);
  if (const std::string wrong = differences(all, file); !wrong.empty()) {
    return Error{Error::Kind::BadFile, wrong, file.path()};
  }
  std::map<std::string, torch::Tensor> read;
  for (const NamedTensor& item : all) {
    ULLAGE_CHECK(item.tensor.is_contiguous(), "state is contiguous");
    ULLAGE_TRY(file.read(item.name, item.tensor.mutable_data_ptr()));
    read[item.name] = item.tensor;
  }
  set_optimizer_steps(trainer.optimizerG, "optimizerG/", *trainer.netG, read);
  set_optimizer_steps(trainer.optimizerD, "optimizerD/", *trainer.netD, read);
  for (const auto& [prefix, scaler] : {std::pair{"scalerG/", &trainer.scalerG}, {"scalerD/", &trainer.scalerD}}) {
    if (Status status = set_scaler(**scaler, prefix, read); !status) {
      return Error{status.error().kind, prefix + (": " + status.error().message), file.path()};
    }
  }
  set_generator_state(read.at("generator"));
  return success();
}

}  // namespace ullage::dcgan
