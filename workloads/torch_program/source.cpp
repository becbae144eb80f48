// SPDX-License-Identifier: Apache-2.0
#include "torch_program/source.h"

#include "ullage/runtime/runtime.h"
#include "ullage/train/as_tensor.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace ullage::torch_program {
namespace {

// Bytes of the file that stay resident at a time. Without this limit, tens of MiB would be read between two samples of
// a memory watch.
constexpr std::int64_t kReadAtOnce = 2 << 20;

}  // namespace

Source Source::under(const std::string& part) const {
  Source below = *this;
  below.prefix_ += part + ".";
  return below;
}

at::Tensor Source::take(const std::string& name, double factor, at::MemoryFormat format) const {
  const std::string key = prefix_ + name;
  const at::Tensor in_file = train::as_tensor(weights_, key);
  const read::WeightTensor& found = *weights_->find(key);
  at::Tensor own = at::empty(in_file.sizes(), type_);
  if (found.is_contiguous()) {
    const at::Tensor from = in_file.view(-1);
    const at::Tensor to = own.view(-1);
    const std::int64_t width = from.element_size();
    for (std::int64_t done = 0, piece; done < from.numel(); done += piece) {
      piece = std::min(kReadAtOnce / width, from.numel() - done);
      to.narrow(0, done, piece).copy_(from.narrow(0, done, piece));
      weights_->let_go({found.data() + done * width, static_cast<std::size_t>(piece * width)});
    }
  } else {
    own.copy_(in_file);
    weights_->let_go(found.storage);
  }
  if (factor != 1) own.mul_(factor);
  own = own.contiguous(format);
  runtime::name_parameter(own.const_data_ptr(), network_ + "." + key);
  return own;
}

at::Tensor Source::view(const std::string& name) const { return train::as_tensor(weights_, prefix_ + name); }

}  // namespace ullage::torch_program
