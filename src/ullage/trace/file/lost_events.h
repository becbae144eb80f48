// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums up the chunks that fell out of the middle of a long take, so that the levels after them are right.
//
//   first chunks  [ a born            )( lost: a died,  b born, c born and died )  newest chunks
//   what is kept                       ( died: a;  born: b;  nothing about c    )  ... b died

#include "ullage/trace/file/gap_part.h"
#include "ullage/trace/file/packed_events.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ullage::trace {

class LostEvents final {
 public:
  explicit LostEvents(const Position& begin) : begin_(begin), end_(begin) {}

  // Adds the chunk that follows those added before.
  void add(const Chunk& chunk);

  const Position& begin() const { return begin_; }
  GapPart part() const;
  std::size_t held() const;  // bytes

 private:
  struct RoleMet {
    std::uint64_t storage = 0;
    std::uint8_t role = 0;
    std::uint64_t name = 0;
  };
  struct Border {
    std::uint8_t what = 0;
    std::uint64_t phase = 0;
    std::vector<PackedKnob> knobs;
  };

  void add(const PackedEvent& event);
  void add_border(const PackedEvent& event);
  bool is_gone(std::uint64_t storage) const { return storage >= begin_.next_storage && !born_.contains(storage); }
  void forget_roles();
  void pack_records(PackedBytes& out) const;

  Position begin_, end_;
  std::uint64_t events_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> born_;  // born here and still alive: id to bytes
  std::vector<std::uint64_t> died_;                        // died here, born before
  std::vector<GapPart::Ended> ended_;                      // ended here, begun before
  std::vector<RoleMet> roles_;
  std::size_t forget_at_ = 1024;  // number of roles at which forget_roles() is called
  std::int64_t charged_ = 0;
  // The borders that the rest of the take needs. These are the last end of a step, the end of a phase from before the
  // gap, and the begin of a phase that goes on.
  std::optional<Border> step_end_, phase_end_, phase_begin_;
};

}  // namespace ullage::trace
