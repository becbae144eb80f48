// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of a file of weights, by name, without a copy and without running anything: safetensors, what torch.save
// writes (zip since torch 1.6, and the legacy form before), and TorchScript archives. Which one it is, is told by the
// content. Files are untrusted: every place and size is checked before it is used.
//
// The file is mapped, not read: its pages come as they are looked at. Checksums of tensors' bytes are not looked at.

#include "ullage/base/result.h"
#include "ullage/read/file/file_content.h"
#include "ullage/read/weights/weight_tensor.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

enum class WeightsFormat : std::uint8_t { Legacy, Zip, TorchScript, Safetensors };

class Weights final {
 public:
  // Named by its path: "state_dict.decoder.conv_in.weight" (checkpoint_pickle.h). NotFound, BadFile with `path:offset`,
  // System. The file may not be made shorter as long as this, or anything made of it, lives (file_content.h).
  static Result<Weights> open(const std::string& path);
  // The same of bytes that outlive all that is made of them; `name` is what messages call them.
  static Result<Weights> read(std::span<const std::byte> content, const std::string& name);

  WeightsFormat format() const { return format_; }
  const std::string& file() const { return file_; }
  std::span<const NamedWeight> tensors() const { return tensors_; }  // by name
  const WeightTensor* find(std::string_view name) const;             // null when there is none
  // A part of the file: what was read of it stops counting as this process's memory, and comes back when it is read
  // again.
  void let_go(std::span<const std::byte> part) const;
  // Those whose names begin with `prefix`, "state_dict.", which is taken off. They share the mapping.
  Weights under(std::string_view prefix) const;

 private:
  std::shared_ptr<const FileContent> content_;  // shared by all that under() gave; null after read()
  std::string file_;
  WeightsFormat format_ = WeightsFormat::Zip;
  std::vector<NamedWeight> tensors_;
};

}  // namespace ullage::read
