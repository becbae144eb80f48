// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the tensors of a file of weights by name, without a copy and without running anything. Formats: safetensors,
// what torch.save writes (zip since torch 1.6, the legacy form before), and TorchScript archives; the content decides
// which. Files are untrusted: every place and size is checked before use.
//
// The file is mapped, so its pages become resident only when they are read. Checksums of tensors' bytes are not
// checked. Refused are files of torch.save that are compressed or that state another byte order than little-endian.

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
  // Opens a file. In a pickle, a tensor's name is its path: "state_dict.decoder.conv_in.weight" (checkpoint_pickle.h).
  // Errors: NotFound, BadFile with `path:offset`, System. The file must not be truncated while this object, or anything
  // made of it, lives (file_content.h).
  static Result<Weights> open(const std::string& path);
  // The same for bytes, which must outlive everything made of them. Messages call them `name`.
  static Result<Weights> read(std::span<const std::byte> content, const std::string& name);

  WeightsFormat format() const { return format_; }
  const std::string& file() const { return file_; }
  std::span<const NamedWeight> tensors() const { return tensors_; }  // sorted by name
  const WeightTensor* find(std::string_view name) const;             // null if there is none
  // Evicts the pages of a part of the file, so that they no longer count as resident. The next access reads them again.
  // Has no effect after read().
  void let_go(std::span<const std::byte> part) const;
  // Returns the tensors whose names begin with `prefix`, as in "state_dict."; their new names lack it. They share the
  // mapping.
  Weights under(std::string_view prefix) const;

 private:
  std::shared_ptr<const FileContent> content_;  // shared with the results of under(); null after read()
  std::string file_;
  WeightsFormat format_ = WeightsFormat::Zip;
  std::vector<NamedWeight> tensors_;
};

}  // namespace ullage::read
