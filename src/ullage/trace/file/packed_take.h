// SPDX-License-Identifier: Apache-2.0
#pragma once

// One take in the recorder's memory: its first chunks, its newest ones, and a summary of those in between.

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/file/interned.h"
#include "ullage/trace/file/lost_events.h"
#include "ullage/trace/file/packed_events.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::trace {

// Packs events. Names are passed as numbers of Texts. Ids are not checked.
class PackedTake final {
 public:
  // `now` and `shapes` are shared by all takes of a recording and must outlive them.
  PackedTake(Position& now, Shapes& shapes, EventLog::Limits limits) : now_(now), shapes_(shapes), limits_(limits) {}

  struct OpTexts {
    std::uint64_t name = 0, node = 0, layer = 0, line = 0;
  };

  // Times are microseconds since the take began. A new storage or op gets the next id of `now`.
  void allocation(Bytes bytes, std::optional<std::uint64_t> op, std::uint64_t micros);
  void free(std::uint64_t storage, std::uint64_t micros);
  void op_begin(const OpView& op, const OpTexts& texts, std::span<const UseView> uses, std::uint64_t micros);
  void op_end(std::uint64_t op, std::uint64_t took_ns, bool failed, OutsideReads outside, std::span<const UseView> uses,
              std::uint64_t micros);
  void save(std::uint64_t storage, SavedKind kind, std::uint64_t micros);
  void unsave(std::uint64_t storage, std::uint64_t micros);
  void out_of_memory(Bytes requested, std::uint64_t micros);
  void mark(std::uint64_t micros);
  void role(std::uint64_t storage, Role role, std::uint64_t name);
  // A border of steps, or the begin or end of a phase, that the program reported.
  void border(ReportedBorder::What what, std::uint64_t phase, std::span<const PackedKnob> knobs);
  // The charges outside the pool grew by `bytes` (or sank, if negative).
  void charge(std::int64_t bytes);

  const std::vector<Chunk>& first() const { return first_; }
  const std::optional<LostEvents>& lost() const { return lost_; }
  const std::deque<Chunk>& newest() const { return newest_; }
  std::uint64_t events() const { return events_; }  // lost ones included
  std::size_t held() const;                         // bytes

 private:
  std::byte* begin(PackedKind kind, unsigned flags, std::size_t most, std::uint64_t micros);
  std::byte* begin_untimed(PackedKind kind, unsigned flags, std::size_t most);
  std::byte* put_uses(std::byte* to, std::span<const UseView> uses);
  std::byte* put_storage(std::byte* to, std::uint64_t storage) const {
    return put_packed(to, now_.next_storage - storage);
  }
  void end(std::byte* to) { chunk_->size = static_cast<std::size_t>(to - chunk_->bytes.get()); }
  void ensure_room(std::size_t most);
  void new_chunk(std::size_t least);

  Position& now_;
  Shapes& shapes_;
  EventLog::Limits limits_;
  std::vector<Chunk> first_;
  std::optional<LostEvents> lost_;
  std::deque<Chunk> newest_;
  Chunk* chunk_ = nullptr;  // the newest chunk
  std::uint64_t line_ = 0;  // number of the text of the source line written last in this chunk; 0: none yet
  std::size_t held_first_ = 0, held_newest_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace ullage::trace
