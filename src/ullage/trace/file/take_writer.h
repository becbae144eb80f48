// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes as parts of a file: of the recorder, that has them packed already, and of anybody who has a Take.

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

void write_before(PartWriter& parts, std::span<const GapPart::Born> before);  // ascending
void write_chunks(PartWriter& parts, const PackedTake& take);

// Packs one Take, event by event. What it says is checked as far as writing needs it: ContractError otherwise.
class TakeWriter final {
 public:
  // Texts and shapes of the take get their numbers; `parts` is null when only these are wanted.
  TakeWriter(const Take& take, Texts& texts, Shapes& shapes, PartWriter* parts);
  void write();

 private:
  void write_head();
  void write_event(std::uint64_t index, PackedTake& packed);
  void write_op_begin(OpId op, PackedTake& packed, std::uint64_t micros);
  void write_op_end(OpId op, PackedTake& packed, std::uint64_t micros);
  void write_records(EventId before, PackedTake& packed);
  void write_gap(EventId at);
  void write_border(const BorderTold& border, PackedTake& packed);
  std::span<const UseView> uses_of(OpId op, bool at_end);
  std::uint64_t micros_of(std::uint64_t event) const;

  const Take& take_;
  Texts& texts_;
  Shapes& shapes_;
  PartWriter* parts_;
  Position now_;
  std::size_t roles_ = 0, borders_ = 0, charges_ = 0, gaps_ = 0;  // written
  std::vector<std::size_t> uses_at_begin_;                        // index: OpId, of those that began
  std::vector<UseView> uses_;
};

}  // namespace ullage::trace
