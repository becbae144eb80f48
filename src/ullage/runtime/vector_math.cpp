// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/vector_math.h"

#include "ullage/runtime/torch_compat.h"

#include <ATen/ops/acos.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/trunc.h>

namespace ullage::runtime {

void settle_vector_math() {
  // Those that ATen/cpu/vml.h takes from MKL; each is another function for floats and for doubles.
  constexpr at::Tensor (*kFunctions[])(const at::Tensor&) = {
      at::acos, at::asin, at::atan,  at::cos, at::erf,  at::erfc, at::erfinv, at::exp,
      at::log,  at::log2, at::log10, at::sin, at::sqrt, at::tan,  at::tanh,   at::trunc};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor one = at::full({1}, 0.5, type);
    for (const auto function : kFunctions) function(one);
  }
}

}  // namespace ullage::runtime
