// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot_segments.h"

#include <algorithm>

namespace ullage::read {
namespace {

enum SegmentField {
  kSegmentDevice,
  kSegmentAddress,
  kSegmentTotal,
  kSegmentAllocated,
  kSegmentActive,
  kSegmentRequested,
  kSegmentStream,
  kSegmentType,
  kSegmentPool,
  kSegmentExpandable,
  kSegmentFrames,
  kSegmentBlocks
};
enum BlockField { kBlockAddress, kBlockSize, kBlockRequested, kBlockState, kBlockFrames, kBlockHistory };
enum HistoryField { kRealSize, kHistoryFrames };

// In the order of states_.
constexpr trace::Block::State kStates[] = {trace::Block::State::Active, trace::Block::State::Inactive,
                                           trace::Block::State::PendingFree, trace::Block::State::PendingFree};

// Sums of sizes cannot overflow, thanks to SnapshotLimits::total_bytes.
struct Sums {
  Bytes allocated, active, requested;
};

Sums sums(const trace::Segment& segment) {
  Sums all;
  for (const trace::Block& block : segment.blocks) {
    if (block.state == trace::Block::State::Inactive) continue;
    if (block.state == trace::Block::State::Active) all.allocated += block.size;
    all.active += block.size;
    all.requested += block.requested;
  }
  return all;
}

}  // namespace

SnapshotSegments::SnapshotSegments(SnapshotSource& source, SnapshotStacks& stacks)
    : source_(source),
      stacks_(stacks),
      fields_({"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
               "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"}),
      block_fields_({"address", "size", "requested_size", "state", "frames", "history"}),
      history_fields_({"real_size", "frames"}),
      states_({"active_allocated", "inactive", "active_pending_free", "active_awaiting_free"}) {}

SnapshotSegments::Made SnapshotSegments::read(PickleValue dict) {
  fields_.read(source_, dict, "a segment");
  if (!source_.count_record(dict)) return {};
  Made made;
  trace::Segment& segment = made.segment;
  made.device = source_.device(fields_[kSegmentDevice], "device of a segment", dict);
  segment.address = source_.address(fields_[kSegmentAddress], "address of a segment", dict);
  segment.size = source_.bytes(fields_[kSegmentTotal], "total_size of a segment", dict);
  source_.check_range(segment.address, segment.size, "a segment", dict);
  segment.stream = {source_.handle(fields_[kSegmentStream], "stream of a segment", dict)};
  segment.small = source_.pickle.string(fields_[kSegmentType]) == "small";
  segment.expandable = source_.flag(fields_[kSegmentExpandable]);
  read_pool(fields_[kSegmentPool], segment);
  segment.stack = stacks_.stack(fields_[kSegmentFrames]);
  read_blocks(fields_[kSegmentBlocks], segment);
  if (source_.failed()) return {};

  const Sums stated_else = sums(segment);
  const auto total = [&](SegmentField field, const char* what, Bytes otherwise) {
    return is_missing(fields_[field]) ? otherwise : source_.bytes(fields_[field], what, dict);
  };
  segment.allocated = total(kSegmentAllocated, "allocated_size of a segment", stated_else.allocated);
  segment.active = total(kSegmentActive, "active_size of a segment", stated_else.active);
  segment.requested = total(kSegmentRequested, "requested_size of a segment", stated_else.requested);
  return made;
}

void SnapshotSegments::read_pool(PickleValue pair, trace::Segment& segment) {
  if (is_missing(pair)) return;
  const auto ids = source_.pickle.items(pair);
  if (pair.kind() == PickleValue::Kind::Dict || ids.size() != 2) {
    return source_.fail(pair.is_container() ? pair : fields_.dict(), "segment_pool_id is not a pair");
  }
  segment.pool = {source_.handle(ids[0], "segment_pool_id", pair), source_.handle(ids[1], "segment_pool_id", pair)};
}

void SnapshotSegments::read_blocks(PickleValue list, trace::Segment& segment) {
  if (list.kind() != PickleValue::Kind::List && list.kind() != PickleValue::Kind::Tuple) {
    return source_.fail(list.is_container() ? list : fields_.dict(), "the blocks of a segment are not a list");
  }
  Address expected = segment.address;
  for (const PickleValue one : source_.pickle.items(list)) {
    segment.blocks.push_back(read_block(one, expected));
    if (source_.failed()) return;
    expected = segment.blocks.back().address + segment.blocks.back().size;
  }
  std::ranges::stable_sort(segment.blocks, {}, &trace::Block::address);
}

trace::Block SnapshotSegments::read_block(PickleValue dict, Address expected) {
  block_fields_.read(source_, dict, "a block");
  if (!source_.count_record(dict)) return {};
  trace::Block block{expected, source_.bytes(block_fields_[kBlockSize], "size of a block", dict), {}, {}, {}};
  if (block_fields_.has(kBlockAddress)) {
    block.address = source_.address(block_fields_[kBlockAddress], "address of a block", dict);
  }
  source_.check_range(block.address, block.size, "a block", dict);
  const std::size_t state = states_.find(source_.pickle, block_fields_[kBlockState]);
  if (state == states_.size()) return source_.fail(dict, "state of a block is none of those known"), block;
  block.state = kStates[state];

  met_old_blocks_ |= !block_fields_.has(kBlockAddress) || block_fields_.has(kBlockHistory);
  const auto history = source_.pickle.items(block_fields_[kBlockHistory]);
  PickleValue requested = block_fields_[kBlockRequested];
  PickleValue frames = block_fields_[kBlockFrames];
  if (!history.empty()) {  // newest first
    history_fields_.read(source_, history.front(), "a block's history");
    if (is_missing(requested)) requested = history_fields_[kRealSize];
    if (is_missing(frames)) frames = history_fields_[kHistoryFrames];
  }
  block.requested = is_missing(requested) ? block.size : source_.bytes(requested, "requested_size of a block", dict);
  block.stack = stacks_.stack(frames);
  return block;
}

}  // namespace ullage::read
