// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out the memory of PyTorch's caching allocator (here: the pool) at one moment of a recording. Finds its
// segments, the live blocks in each, and the holes between them. A segment can be given back to the device only if
// nothing in it is live:
//
//   segment of 20 MiB  [ live 1 MiB |          hole 12 MiB          | live 2 MiB | hole 5 MiB ]   stuck: 17 MiB
//   segment of 20 MiB  [                          hole 20 MiB                                ]   usable: 20 MiB

#include "ullage/base/bytes.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

// An owner that has the most live bytes in some segments, and so keeps them from being given back.
struct Pin {
  std::string owner;  // "blocks without a stack" if it is not known
  Bytes live;         // of all live blocks in those segments
  Bytes own;          // of the owner's blocks there
  Bytes largest;      // the largest of the owner's blocks there
  Bytes pinned;       // the holes in those segments
  std::uint64_t segments = 0;
};

struct PoolLayout {
  Bytes reserved;
  Bytes usable;        // segments in which nothing is live
  Bytes stuck;         // the other bytes that are not live: holes, and the rounding of each block
  Bytes largest_hole;  // the largest free piece; an empty segment counts as a hole
  std::uint64_t segments = 0;
  std::uint64_t empty_segments = 0;
  Bytes in_private_pools;  // reserved in CUDA graphs' pools; not at the moment, but at the end of the recording
  std::vector<Pin> pins;   // most pinned bytes first; of segments with 1 MiB of holes or more
};

// None if there are no segments at the moment, or if the recording's blocks and segments contradict each other. Also
// none if a segment has more than 2^56 bytes.
std::optional<PoolLayout> layout_at(const trace::DeviceRecording& recorded, const trace::Trace& trace,
                                    const trace::Moment& moment, const std::vector<trace::StackMeaning>& meanings);

// Returns the storages live at the moment, in order of birth.
std::vector<StorageId> live_at(const trace::Trace& trace, const trace::Moment& moment);

}  // namespace ullage::diagnose
