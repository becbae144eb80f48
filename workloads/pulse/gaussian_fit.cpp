// SPDX-License-Identifier: Apache-2.0
#include "pulse/gaussian_fit.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace ullage::pulse {

std::optional<GaussianFit> fit_gaussian(const Mapping& mapping, std::int64_t samples, std::int64_t chunk,
                                        const std::function<bool(std::int64_t done)>& go_on) {
  const at::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(0);
  at::Tensor sum = at::zeros({kLatent}, at::kDouble);
  at::Tensor squares = at::zeros({kLatent}, at::kDouble);
  for (std::int64_t done = 0; done < samples;) {
    const std::int64_t now = std::min(chunk, samples - done);
    const at::Tensor x = at::leaky_relu(mapping(at::randn({now, kLatent}, generator, at::kFloat)), 5.0);
    const at::Tensor wide = x.to(at::kDouble);
    sum += wide.sum(0);
    squares += wide.pow(2).sum(0);
    done += now;
    if (!go_on(done)) return std::nullopt;
  }
  const auto count = static_cast<double>(samples);
  const at::Tensor mean = sum / count;
  const at::Tensor variance = (squares - count * mean.pow(2)) / (count - 1);
  return GaussianFit{mean.to(at::kFloat), variance.sqrt().to(at::kFloat)};
}

}  // namespace ullage::pulse
