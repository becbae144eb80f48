// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/packed_take.h"

#include <algorithm>
#include <utility>

namespace ullage::trace {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;  // bytes of a chunk, unless one record needs more
constexpr std::size_t kMostTag = 1 + kMostPacked;      // bytes of the tag and a time

std::size_t most_of(std::span<const UseView> uses) {
  std::size_t most = kMostPacked;
  for (const UseView& use : uses) most += kMostPacked * (3 + use.sizes.size()) + 1;
  return most;
}

}  // namespace

// Makes sure that the chunk has room for a record with `most` bytes after its tag and time.
void PackedTake::ensure_room(std::size_t most) {
  if (chunk_ == nullptr || chunk_->capacity - chunk_->size < most + kMostTag) new_chunk(most + kMostTag);
}

// Writes the tag. Returns the place after it, which has room for `most` bytes and a time.
std::byte* PackedTake::begin_untimed(PackedKind kind, unsigned flags, std::size_t most) {
  ensure_room(most);
  std::byte* to = chunk_->bytes.get() + chunk_->size;
  *to = static_cast<std::byte>(static_cast<unsigned>(kind) | flags << 4);
  return to + 1;
}

std::byte* PackedTake::begin(PackedKind kind, unsigned flags, std::size_t most, std::uint64_t micros) {
  std::byte* to = begin_untimed(kind, flags, most);
  ++chunk_->events;
  ++events_;
  const std::uint64_t later = micros > now_.micros ? micros - now_.micros : 0;
  now_.micros += later;
  return put_packed(to, later);
}

std::byte* PackedTake::put_uses(std::byte* to, std::span<const UseView> uses) {
  to = put_packed(to, uses.size());
  for (const UseView& use : uses) {
    to = put_storage(to, use.storage.value);
    const std::uint64_t shape = shapes_.of(use.dtype, use.sizes);
    to = put_packed(to, shape << 2 | static_cast<std::uint64_t>(use.how));
    if (shape != 0) continue;
    *to++ = static_cast<std::byte>(use.dtype);
    to = put_packed(to, use.sizes.size());
    for (const std::int64_t size : use.sizes) {
      to = put_packed(to, static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0)));
    }
  }
  return to;
}

void PackedTake::allocation(Bytes bytes, std::optional<std::uint64_t> op, std::uint64_t micros) {
  std::byte* to = begin(PackedKind::Allocation, op ? 0 : kNotInOp, 2 * kMostPacked, micros);
  to = put_packed(to, bytes.count);
  if (op) to = put_packed(to, now_.next_op - *op);
  ++now_.next_storage;
  end(to);
}

void PackedTake::free(std::uint64_t storage, std::uint64_t micros) {
  end(put_storage(begin(PackedKind::Free, 0, kMostPacked, micros), storage));
}

void PackedTake::op_begin(const OpView& op, const OpTexts& texts, std::span<const UseView> uses, std::uint64_t micros) {
  const bool other_thread = op.thread != now_.thread;
  const unsigned flags = (op.backward ? kBackward : 0u) | (op.grad_mode ? kGradMode : 0u) | (op.sliced ? kSliced : 0u) |
                         (other_thread ? kOtherThread : 0u);
  const std::size_t most = 4 * kMostPacked + most_of(uses);
  ensure_room(most + kMostPacked + kMostTag);  // so that the Line and the OpBegin are in one chunk
  if (texts.line != line_) end(put_packed(begin_untimed(PackedKind::Line, 0, kMostPacked), texts.line));
  line_ = texts.line;
  std::byte* to = begin(PackedKind::OpBegin, flags, most, micros);
  to = put_packed(put_packed(put_packed(to, texts.name), texts.node), texts.layer);
  if (other_thread) to = put_packed(to, op.thread);
  now_.thread = op.thread;
  ++now_.next_op;
  end(put_uses(to, uses));
}

void PackedTake::op_end(std::uint64_t op, std::uint64_t took_ns, bool failed, OutsideReads outside,
                        std::span<const UseView> uses, std::uint64_t micros) {
  const unsigned flags =
      (failed ? kFailed : 0u) | (outside.mapped ? kReadsMapped : 0u) | (outside.other ? kReadsOther : 0u);
  std::byte* to = begin(PackedKind::OpEnd, flags, 2 * kMostPacked + most_of(uses), micros);
  to = put_packed(to, now_.next_op - op);
  end(put_uses(put_packed(to, took_ns), uses));
}

void PackedTake::save(std::uint64_t storage, SavedKind kind, std::uint64_t micros) {
  end(put_storage(begin(PackedKind::Save, static_cast<unsigned>(kind), kMostPacked, micros), storage));
}

void PackedTake::unsave(std::uint64_t storage, std::uint64_t micros) {
  end(put_storage(begin(PackedKind::Unsave, 0, kMostPacked, micros), storage));
}

void PackedTake::out_of_memory(Bytes requested, std::uint64_t micros) {
  end(put_packed(begin(PackedKind::OutOfMemory, 0, kMostPacked, micros), requested.count));
}

void PackedTake::mark(std::uint64_t micros) { end(begin(PackedKind::Mark, 0, 0, micros)); }

void PackedTake::role(std::uint64_t storage, Role role, std::uint64_t name) {
  std::byte* to = begin_untimed(PackedKind::Role, static_cast<unsigned>(role), 2 * kMostPacked);
  end(put_packed(put_storage(to, storage), name));
}

void PackedTake::border(ReportedBorder::What what, std::uint64_t phase, std::span<const PackedKnob> knobs) {
  const std::size_t most = kMostPacked * (2 + 2 * knobs.size());
  std::byte* to = begin_untimed(PackedKind::Border, static_cast<unsigned>(what), most);
  to = put_packed(put_packed(to, phase), knobs.size());
  for (const PackedKnob& knob : knobs) to = put_packed(put_packed(to, knob.name), fold(knob.value));
  end(to);
}

void PackedTake::charge(std::int64_t bytes) {
  end(put_packed(begin_untimed(PackedKind::Charge, 0, kMostPacked), fold(bytes)));
}

// The take keeps its first chunks and its newest ones. A new chunk goes to first_ until that has reached its limit,
// then to newest_. While newest_ is above its limit, its oldest chunk is summed up in lost_ and dropped.
void PackedTake::new_chunk(std::size_t least) {
  Chunk chunk;
  chunk.begin = now_;
  chunk.capacity = std::max(kChunk, least);
  chunk.bytes = std::make_unique_for_overwrite<std::byte[]>(chunk.capacity);
  line_ = 0;
  if (newest_.empty() && (first_.empty() || held_first_ + chunk.capacity <= limits_.first.count)) {
    held_first_ += chunk.capacity;
    chunk_ = &first_.emplace_back(std::move(chunk));
    return;
  }
  held_newest_ += chunk.capacity;
  chunk_ = &newest_.emplace_back(std::move(chunk));
  while (newest_.size() > 1 && held_newest_ > limits_.newest.count) {
    const Chunk& oldest = newest_.front();
    if (!lost_) lost_.emplace(oldest.begin);
    lost_->add(oldest);
    held_newest_ -= oldest.capacity;
    newest_.pop_front();
  }
}

std::size_t PackedTake::held() const { return held_first_ + held_newest_ + (lost_ ? lost_->held() : 0); }

}  // namespace ullage::trace
