// SPDX-License-Identifier: Apache-2.0
#include "dcgan/sample_grid.h"

#include "torch_program/run_parts.h"
#include "ullage/runtime/runtime.h"

namespace ullage::dcgan {
Grid sample_grid(Trainer& trainer, const Options& options) {
  const runtime::Phase phase("sampling", {{"batch", kMostSamples}});
  const torch::Tensor pictures = trainer.sample();
  const auto shown = static_cast<std::uint32_t>(pictures.size(0));
  const auto side = static_cast<std::uint32_t>(options.image_size);
  const GridSize size = grid_size(shown, side);
  const auto charged = torch_program::charge(Bytes{3} * size.width * size.height, "the grid of samples");
  return make_grid(pictures.const_data_ptr<float>(), shown, side);
}

StepSettings step_settings(const Options& o) { return {o.micro_batch < o.batch ? o.micro_batch : 0, o.precision}; }

NetworkShape network_shape(const Options& o) {
  return {o.image_size, o.nz, o.ngf, o.ndf, o.max_channels, o.blocks == "separable"};
}

AdamSettings adam_settings(const Options& o) { return {o.lr, o.beta1, o.beta2}; }

}  // namespace ullage::dcgan
