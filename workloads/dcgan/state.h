// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole state of a run at the end of a step, by name. It has parameters and buffers of both networks, Adam's state,
// the random generator's state and the fixed noise. Checkpoints hold it, and state_sha256 digests it.

#include "program/safetensors.h"
#include "dcgan/trainer.h"

#include <string>
#include <vector>

namespace ullage::dcgan {

struct NamedTensor {
  std::string name;  // "netG/main.0.weight", "optimizerG/main.0.weight/exp_avg", "generator", ...
  torch::Tensor tensor;
};

// The order is fixed: netG, netD (parameters, then buffers), optimizerG, optimizerD (exp_avg, exp_avg_sq, step of each
// parameter that has them), then generator and fixed_noise. In fp16, scalerG and scalerD (the entries of
// GradScaler::state_dict()) come before the generator. The tensors are the trainer's own and not copies, except `step`,
// those of the scalers and `generator`.
std::vector<NamedTensor> state_of(const Trainer& trainer);

// SHA-256 over name, type, shape and bytes of all tensors but the fixed noise, in that order.
std::string state_sha256(const Trainer& trainer);

program::TensorShape shape_of(const torch::Tensor& tensor);
std::vector<program::TensorToWrite> to_write(const std::vector<NamedTensor>& tensors);

// Reads a checkpoint directly into the trainer's own memory, and sets torch's default generator. BadFile: names, types
// or shapes differ (the message lists the first differences). After an error the trainer must not be used.
Status restore_state(Trainer& trainer, const program::SafetensorsFile& file);

}  // namespace ullage::dcgan
