// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the frames of an input's StackIds are.

#include "ullage/trace/input.h"

namespace ullage::report {

// None: a log has no stacks by id. Lives as long as the input.
inline const trace::Stacks* stacks_of(const trace::Input& input) {
  if (const auto* recording = std::get_if<trace::Recording>(&input)) return &recording->stacks;
  if (const auto* profile = std::get_if<trace::Profile>(&input)) return &profile->stacks;
  return nullptr;
}

}  // namespace ullage::report
