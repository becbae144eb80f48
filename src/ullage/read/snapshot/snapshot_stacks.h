// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stacks of a snapshot. Millions of references lead to a few thousand frames, and events share whole lists: each
// frame and each list of the file is converted once.

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

  // Of a list of frames, innermost first. Missing or empty: the stack that was not recorded.
  trace::StackId stack(PickleValue frames);

 private:
  // What a frame is made of, as the file has it: two dicts of the same three make the same frame.
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
  std::vector<std::uint32_t> ids_;  // by container of the file: 1 + its FrameId or StackId; 0: not converted yet
  std::unordered_map<Parts, trace::FrameId, Hash>
      frames_;  // so that no file can have one long name made again and again
  struct Recent {
    const PickleValue* items = nullptr;
    std::size_t size = 0;
    trace::StackId stack;
  };
  std::vector<Recent> recent_;       // by place: lists with equal items mostly share them
  std::vector<trace::FrameId> one_;  // kept for its memory
};

}  // namespace ullage::read
