// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes takes as parts of a file: those that the recorder has packed already, and any Take.

#include "ullage/trace/file/file_parts.h"
#include "ullage/trace/file/gap_part.h"
#include "ullage/trace/file/interned.h"
#include "ullage/trace/file/packed_take.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ullage::trace {

// Writes the storages that were live before a take, in ascending order of their ids.
void write_before(PartWriter& parts, std::span<const GapPart::Born> before);
// Writes the chunks of a take, and between them the part that stands for lost events.
void write_chunks(PartWriter& parts, const PackedTake& take);

// Packs a Take event by event. ContractError if its parts do not fit together or a file cannot hold one of its events.
class TakeWriter final {
 public:
  // write() gives numbers to the take's texts and shapes. If `parts` is null, it does nothing else.
  TakeWriter(const Take& take, Texts& texts, Shapes& shapes, PartWriter* parts);
  void write();

 private:
  void write_head();
  void write_event(std::uint64_t index, PackedTake& packed);
  void write_op_begin(OpId op, PackedTake& packed, std::uint64_t micros);
  void write_op_end(OpId op, PackedTake& packed, std::uint64_t micros);
  void write_records(EventId before, PackedTake& packed);
  void write_gap(EventId at);
  void write_border(const ReportedBorder& border, PackedTake& packed);
  std::span<const UseView> uses_of(OpId op, bool at_end);
  std::uint64_t micros_of(std::uint64_t event) const;

  const Take& take_;
  Texts& texts_;
  Shapes& shapes_;
  PartWriter* parts_;
  Position now_;
  std::size_t roles_ = 0, borders_ = 0, charges_ = 0, gaps_ = 0;  // how many are written
  std::vector<std::size_t> uses_at_begin_;                        // index: OpId; uses that go with the op's begin
  std::vector<UseView> uses_;
};

}  // namespace ullage::trace
