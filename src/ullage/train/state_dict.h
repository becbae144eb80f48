// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads what Python's torch.save(module.state_dict()) wrote, and what is published in that form, into a module of
// LibTorch, which has no such function. The file is mapped and untrusted: nothing in it is run.

#include "ullage/base/result.h"

#include <torch/nn/module.h>

#include <string>

namespace ullage::train {

// Copies the file's tensors into the module's parameters and buffers of the same names, in the module's types. Reads
// zip and legacy files of torch.save, TorchScript archives and safetensors. If `prefix` ("state_dict.") is given, only
// tensors whose names begin with it are taken, and their names lose it.
//
// BadFile, and the module is as before: names are missing or extra, or a shape differs; the error names the first ten.
// BadFile also if a floating-point parameter or buffer has no tensor of 16, 32 or 64-bit floats in the file.
// BatchNorm's num_batches_tracked may be missing, as in Python; then it becomes 0. NotFound: there is no such file.
// System: it cannot be read.
Status load_state_dict(torch::nn::Module& module, const std::string& path, const std::string& prefix = "");

}  // namespace ullage::train
