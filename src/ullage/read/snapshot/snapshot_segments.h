// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the segments of a PyTorch snapshot and the blocks in them, as they were when it was taken. Knows every layout
// that a version of torch has written (docs/explain.md).

#include "ullage/read/snapshot/snapshot_stacks.h"
#include "ullage/trace/recording/recording.h"

namespace ullage::read {

class SnapshotSegments final {
 public:
  // Both must outlive this object.
  SnapshotSegments(SnapshotSource& source, SnapshotStacks& stacks);

  struct Made {
    unsigned device = 0;
    trace::Segment segment;
  };
  // Reads a segment and its blocks, sorted by address. Totals that the file does not state are sums over the blocks. If
  // the file is damaged, `source` has the error (failed()), and the result means nothing.
  Made read(PickleValue dict);
  // Whether a block so far had no address of its own, or had a `history` in place of frames, as torch 2.0 writes.
  bool met_old_blocks() const { return met_old_blocks_; }

 private:
  void read_blocks(PickleValue list, trace::Segment& segment);
  trace::Block read_block(PickleValue dict, Address expected);
  void read_pool(PickleValue pair, trace::Segment& segment);

  SnapshotSource& source_;
  SnapshotStacks& stacks_;
  Fields fields_;
  Fields block_fields_;
  Fields history_fields_;
  Words states_;
  bool met_old_blocks_ = false;
};

}  // namespace ullage::read
