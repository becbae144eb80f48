// SPDX-License-Identifier: Apache-2.0
#include "torch_program/tensor_file.h"

#include "program/output_files.h"
#include "program/safetensors.h"

#include <cerrno>
#include <cstdio>
#include <vector>

namespace ullage::torch_program {
namespace {

read::Dtype dtype_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return read::Dtype::F32;
  if (tensor.scalar_type() == at::kDouble) return read::Dtype::F64;
  if (tensor.scalar_type() == at::kLong) return read::Dtype::I64;
  ULLAGE_CHECK(tensor.scalar_type() == at::kByte, "a file of floats, doubles, 64-bit integers and bytes");
  return read::Dtype::U8;
}

}  // namespace

Status write_tensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors) {
  std::vector<at::Tensor> held;
  std::vector<program::TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& one = held.emplace_back(tensor.contiguous());
    list.push_back({name, {dtype_of(one), one.sizes().vec()}, one.const_data_ptr()});
  }
  const std::string partial = path + ".partial";
  ULLAGE_TRY(program::write_safetensors(partial, list, {}));
  if (std::rename(partial.c_str(), path.c_str()) == 0) return success();
  const int error = errno;
  std::remove(partial.c_str());
  return program::cannot_write(path, error);
}

}  // namespace ullage::torch_program
