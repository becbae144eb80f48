// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/state_dict.h"

#include "ullage/read/weights/weights_match.h"
#include "ullage/train/as_tensor.h"

#include <c10/core/GradMode.h>

#include <memory>
#include <vector>

namespace ullage::train {

Status load_state_dict(torch::nn::Module& module, const std::string& path, const std::string& prefix) {
  ULLAGE_TRY_VALUE(const auto whole, read::Weights::open(path));
  const auto weights = std::make_shared<const read::Weights>(prefix.empty() ? whole : whole.under(prefix));
  std::vector<read::WantedWeight> wanted, floats;
  std::vector<at::Tensor> targets;
  const auto want = [&](const std::string& name, const at::Tensor& tensor) {
    wanted.push_back({name, tensor.sizes().vec()});
    targets.push_back(tensor);
    if (tensor.is_floating_point()) floats.push_back(wanted.back());
  };
  for (const auto& item : module.named_parameters()) want(item.key(), item.value());
  std::vector<at::Tensor> unknown_counts;
  for (const auto& item : module.named_buffers()) {
    const bool may_lack = item.key().ends_with("num_batches_tracked") && weights->find(item.key()) == nullptr;
    if (may_lack) {
      unknown_counts.push_back(item.value());
    } else {
      want(item.key(), item.value());
    }
  }
  ULLAGE_TRY(read::match(*weights, wanted));
  ULLAGE_TRY(read::match_floats(*weights, floats));
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < wanted.size(); ++i) targets[i].copy_(as_tensor(weights, wanted[i].name));
  for (at::Tensor& count : unknown_counts) count.zero_();
  return success();
}

}  // namespace ullage::train
