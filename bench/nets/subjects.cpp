// SPDX-License-Identifier: Apache-2.0
#include "subjects.h"

#include <torch/optim/sgd.h>

namespace bench_nets {

Subject with_momentum(std::shared_ptr<nn::Module> model, double decay, std::function<Tensor()> loss) {
  const auto options = torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(decay);
  auto training = std::make_unique<nets::SimpleTraining<torch::optim::SGD>>(model, options, std::move(loss));
  return {std::move(model), std::move(training)};
}

}  // namespace bench_nets
