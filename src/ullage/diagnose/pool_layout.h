// SPDX-License-Identifier: Apache-2.0
#pragma once

// How PyTorch's pool lay in memory at one moment of a recording: which segments it held, what was live in each and
// which holes were left between. A segment can be given back to the device only when nothing in it is live:
//
//   segment of 20 MiB  [ live 1 MiB |          hole 12 MiB          | live 2 MiB | hole 5 MiB ]   stuck: 17 MiB
//   segment of 20 MiB  [                          hole 20 MiB                              ]   usable: 20 MiB

#include "ullage/base/bytes.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

// Whoever's blocks keep segments from being given back.
struct Pin {
  std::string owner;
  Bytes live;    // of all blocks in those segments
  Bytes pinned;  // the holes beside them
  std::uint64_t segments = 0;
};

struct PoolLayout {
  Bytes reserved;
  Bytes usable;        // segments in which nothing is live
  Bytes stuck;         // the rest that is not live: holes, and what rounding adds to each block
  Bytes largest_hole;  // of one piece, whole empty segments included
  std::uint64_t segments = 0;
  std::uint64_t empty_segments = 0;
  Bytes in_private_pools;  // of reserved, at the end of the recording: pools of CUDA graphs
  std::vector<Pin> pins;   // most pinned bytes first; only segments that are more hole than live count
};

// None when the recording does not know segments, or when its blocks and segments contradict each other.
std::optional<PoolLayout> layout_at(const trace::DeviceRecording& recorded, const trace::Trace& trace,
                                    const trace::Moment& moment, const std::vector<trace::StackMeaning>& meanings);

// The storages live at the moment, in order of birth.
std::vector<StorageId> live_at(const trace::Trace& trace, const trace::Moment& moment);

}  // namespace ullage::diagnose
