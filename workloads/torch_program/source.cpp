// SPDX-License-Identifier: Apache-2.0
#include "torch_program/source.h"

#include "ullage/runtime/runtime.h"
#include "torch_program/as_tensor.h"

namespace ullage::torch_program {

Source Source::under(const std::string& part) const {
  Source below = *this;
  below.prefix_ += part + ".";
  return below;
}

at::Tensor Source::take(const std::string& name, double factor) const {
  const std::string key = prefix_ + name;
  const at::Tensor in_file = as_tensor(weights_, key);
  at::Tensor own = in_file.to(type_, /*non_blocking=*/false, /*copy=*/true).contiguous();
  weights_->let_go(*weights_->find(key));
  if (factor != 1) own.mul_(factor);
  runtime::name_parameter(own.const_data_ptr(), network_ + "." + key);
  return own;
}

at::Tensor Source::view(const std::string& name) const { return as_tensor(weights_, prefix_ + name); }

}  // namespace ullage::torch_program
