// SPDX-License-Identifier: Apache-2.0
#include "torch_program/pixels.h"

#include "image/write_png.h"

#include <ATen/ATen.h>

namespace ullage::torch_program {

at::Tensor to_tensor(const image::Picture& picture, at::ScalarType type) {
  at::Tensor bytes = at::empty({picture.height, picture.width, 3}, at::kByte);
  std::copy(picture.rgb.begin(), picture.rgb.end(), bytes.mutable_data_ptr<std::uint8_t>());
  return bytes.permute({2, 0, 1}).unsqueeze(0).to(type).contiguous().div_(255);
}

image::Picture to_picture(const at::Tensor& tensor) {
  const at::Tensor bytes = tensor.clamp(0, 1).mul_(255).to(at::kByte).permute({1, 2, 0}).contiguous();
  const auto* begin = bytes.const_data_ptr<std::uint8_t>();
  return {static_cast<std::uint32_t>(tensor.size(2)),
          static_cast<std::uint32_t>(tensor.size(1)),
          {begin, begin + bytes.numel()}};
}

Status write_png(const std::string& path, const at::Tensor& tensor, std::span<const image::PngText> texts) {
  const image::Picture picture = to_picture(tensor);
  return image::write_png(path, picture.width, picture.height, picture.rgb, texts);
}

}  // namespace ullage::torch_program
