// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/vector_math.h"

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/ops/cos.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tanh.h>

namespace ullage::runtime {

// Makes the first call of each of MKL's vector functions, because an error in MKL makes that call unsafe when two
// threads make it at once. The header has the details, and says why these seven.
void prepare_vector_math() {
  constexpr at::Tensor (*kFunctions[])(const at::Tensor&) = {at::cos, at::erf,  at::exp, at::log,
                                                             at::sin, at::sqrt, at::tanh};
  const at::Tensor one = at::full({1}, 0.5, at::kFloat);
  for (const auto function : kFunctions) function(one);
}

}  // namespace ullage::runtime
