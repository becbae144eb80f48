// SPDX-License-Identifier: Apache-2.0
#pragma once

// A short name for a stack: the innermost frame of the person's own code, "model.py:42 forward". If that calls a model
// of a package, the innermost forward of this model comes first: "modeling_bert.py:430 forward (train.py:63 main)".
// Without a frame of the person's own: the node of the backward pass, else the outermost op, else the innermost frame
// of a library.

#include "ullage/trace/recording/stacks.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ullage::trace {

class OwnerNames final {
 public:
  // `stacks` must outlive it.
  explicit OwnerNames(const Stacks& stacks);
  std::string name(std::span<const FrameId> stack) const;

 private:
  enum class Kind : std::uint8_t { Own, PackagedModel, Library, Native };

  Kind kind_of(const Frame& frame) const;
  std::string python_name(FrameId id) const;
  std::string native_name(std::span<const FrameId> stack) const;

  const Stacks& stacks_;
  std::vector<Kind> kinds_;            // by FrameId
  std::vector<bool> shares_its_name_;  // by FrameId: another file of the person's own has the same file name
};

}  // namespace ullage::trace
