// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the stacks of a snapshot. Millions of references lead to a few thousand frames, and events share whole lists.
// So each frame and each list of the file is converted only once.

#include "ullage/read/snapshot/snapshot_fields.h"
#include "ullage/trace/recording/stacks.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace ullage::read {

class SnapshotStacks final {
 public:
  SnapshotStacks(SnapshotSource& source, trace::Stacks& stacks);

  // Returns the stack of a list of frames, innermost first. If it is missing or empty: StackId{0}, "not recorded".
  trace::StackId stack(PickleValue frames);

 private:
  // The file's values that make a frame. Two dicts with the same three make the same frame.
  struct Parts {
    PickleValue file, function, line;
    friend bool operator==(const Parts&, const Parts&) = default;
  };
  struct Hash {
    std::size_t operator()(const Parts& parts) const;
  };

  trace::StackId convert(std::span<const PickleValue> items);
  trace::FrameId frame(PickleValue dict);

  SnapshotSource& source_;
  trace::Stacks& stacks_;
  Fields fields_;
  std::vector<std::uint32_t> ids_;  // by the file's container: 1 + its FrameId or StackId; 0: not converted yet
  std::unordered_map<Parts, trace::FrameId, Hash>
      frames_;  // so no file can make us convert one long name again and again
  struct Recent {
    const PickleValue* items = nullptr;
    std::size_t size = 0;
    trace::StackId stack;
  };
  std::vector<Recent> recent_;       // by address of the items, which equal lists mostly share
  std::vector<trace::FrameId> one_;  // scratch, kept to save allocations
};

}  // namespace ullage::read
