// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/recording.h"

#include "torch_program/tensor_file.h"

#include <ATen/ATen.h>

namespace ullage::vqgan_clip {

void Recording::see(const Evaluation& seen, const Search& search) {
  if (rows_.empty()) {
    tensors_["picture"] = seen.picture;
    tensors_["features"] = seen.features;
    tensors_["gradient/z"] = search.z().grad().clone();
  }
  rows_["losses"].push_back(seen.losses);
  rows_["z"].push_back(search.z().detach().clone());
}

Status Recording::write(const std::string& path) const {
  std::map<std::string, at::Tensor> all = tensors_;
  for (const auto& [name, rows] : rows_) all["trajectory/" + name] = at::stack(rows);
  return torch_program::write_tensors(path, all);
}

}  // namespace ullage::vqgan_clip
