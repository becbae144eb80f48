// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/work.h"

#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/streams.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ullage::drycard {
namespace {

constexpr std::size_t kQueued = 1024;  // about what a driver queues for a stream before a launch waits
constexpr std::uint64_t kDefaultStream = 0;

struct Touch {
  Address begin = 0;
  Address end = 0;
  bool writes = false;  // true: it writes for sure; false: it reads, or is a kernel, which may do either

  bool meets(Address from, Address to) const { return from < end && begin < to; }
};

struct Piece {
  enum class Kind { Kernel, Copy };
  std::uint64_t number = 0;  // in its stream, from 1 on
  Kind kind = Kind::Kernel;
  const char* name = "";
  std::vector<Touch> touches = {};
  std::shared_ptr<const WorkClock> after = {};
};

struct Queue {
  bool waits_for_default = true;
  std::uint64_t given = 0;
  std::deque<Piece> pending;
  std::shared_ptr<const WorkClock> clock = std::make_shared<const WorkClock>();
};

struct Work {
  std::map<std::uint64_t, Queue> queues;
  std::minstd_rand random{static_cast<unsigned>(std::strtoul(std::getenv("ULLAGE_DRYCARD_CHECKS"), nullptr, 10)) + 1};
};

Work& work() {
  static Work* const made = new Work;
  return *made;
}

std::uint64_t id_of(const void* stream) {
  return reinterpret_cast<Address>(stream) < 16 ? kDefaultStream : static_cast<const Stream*>(stream)->id;
}

Queue& queue_of(const void* stream) {
  constexpr unsigned kNonBlocking = 1;
  const std::uint64_t id = id_of(stream);
  const auto [at, is_new] = work().queues.try_emplace(id);
  if (is_new && id != kDefaultStream) {
    at->second.waits_for_default = (static_cast<const Stream*>(stream)->flags & kNonBlocking) == 0;
  }
  return at->second;
}

void merge(std::shared_ptr<const WorkClock>& into, const WorkClock& clock) {
  const auto is_ahead = [&](const auto& one) {
    const auto found = into->find(one.first);
    return found == into->end() || found->second < one.second;
  };
  if (std::ranges::none_of(clock, is_ahead)) return;
  auto merged = std::make_shared<WorkClock>(*into);
  for (const auto& [id, number] : clock) (*merged)[id] = std::max((*merged)[id], number);
  into = std::move(merged);
}

void finish_until(std::uint64_t id, std::uint64_t number) {
  const auto found = work().queues.find(id);
  if (found == work().queues.end()) return;
  std::deque<Piece>& pending = found->second.pending;
  while (!pending.empty() && pending.front().number <= number) {
    const Piece done = std::move(pending.front());
    pending.pop_front();
    for (const auto& [other, its] : *done.after) {
      if (other != id) finish_until(other, its);
    }
  }
}

// The default stream waits for every stream without cudaStreamNonBlocking, and these wait for it.
void order_with_default(std::uint64_t id, Queue& queue) {
  if (id != kDefaultStream) {
    const auto found = work().queues.find(kDefaultStream);
    if (queue.waits_for_default && found != work().queues.end()) {
      merge(queue.clock, {{kDefaultStream, found->second.given}});
    }
    return;
  }
  for (const auto& [other, its] : work().queues) {
    if (other != kDefaultStream && its.waits_for_default) merge(queue.clock, {{other, its.given}});
  }
}

// Returns the first piece of work on these bytes that is pending on another stream and that this queue need not wait
// for.
template <class Matters>
const Piece* racing(std::uint64_t id, const Queue& queue, const Touch& touch, const Matters& matters) {
  for (const auto& [other, its] : work().queues) {
    if (other == id) continue;
    const auto known = queue.clock->find(other);
    const std::uint64_t before = known == queue.clock->end() ? 0 : known->second;
    for (const Piece& piece : its.pending) {
      if (piece.number <= before) continue;
      for (const Touch& one : piece.touches) {
        if (one.meets(touch.begin, touch.end) && matters(piece, one)) return &piece;
      }
    }
  }
  return nullptr;
}

void give(const void* stream, Piece piece, bool is_strict) {
  const std::uint64_t id = id_of(stream);
  Queue& queue = queue_of(stream);
  order_with_default(id, queue);
  for (const Touch& touch : piece.touches) {
    if (const Address hole = first_unmapped(touch.begin, touch.end); hole != 0) {
      note_finding("nothing is mapped at %#zx: %s", hole, piece.name);
    }
    const Piece* other = racing(id, queue, touch, [&](const Piece& its, const Touch& one) {
      if (is_strict) return touch.writes || one.writes || its.kind == Piece::Kind::Kernel;
      return one.writes && its.kind == Piece::Kind::Copy;
    });
    if (other != nullptr) {
      note_finding("the bytes at %#zx: %s, while on another stream %s may still work on them", touch.begin, piece.name,
                   other->name);
    }
  }
  piece.number = ++queue.given;
  piece.after = queue.clock;
  queue.pending.push_back(std::move(piece));
  if (queue.pending.size() > kQueued) finish_until(id, queue.pending.front().number + work().random() % (kQueued / 2));
}

bool is_done(const WorkClock& clock) {
  return std::ranges::all_of(clock, [](const auto& one) {
    const auto found = work().queues.find(one.first);
    return found == work().queues.end() || found->second.pending.empty() ||
           found->second.pending.front().number > one.second;
  });
}

// Answers the program's question whether this work is done. Pending work becomes done at one question in four, at
// random.
bool ask(const WorkClock& clock) {
  if (is_done(clock)) return true;
  if (work().random() % 4 != 0) return false;
  for (const auto& [id, number] : clock) finish_until(id, number);
  return true;
}

WorkClock all_of(const void* stream) {
  Queue& queue = queue_of(stream);
  WorkClock clock = *queue.clock;
  clock[id_of(stream)] = queue.given;
  return clock;
}

}  // namespace

bool checks_work() {
  static const bool is_on = std::getenv("ULLAGE_DRYCARD_CHECKS") != nullptr;
  return is_on;
}

void give_kernel(const void* stream, const char* name, std::span<const Address> pointers) {
  if (!checks_work() || active_capture(stream) != nullptr) return;
  const std::lock_guard hold(lock());
  Piece piece{.kind = Piece::Kind::Kernel, .name = name};
  for (const Address at : pointers) {
    if (is_device(at) && is_ours(at)) piece.touches.push_back({at, at + 1, false});
  }
  give(stream, std::move(piece), false);
}

void give_copy(const void* stream, Address to, Address from, std::size_t bytes, Calls by) {
  if (!checks_work() || bytes == 0 || active_capture(stream) != nullptr) return;
  const std::lock_guard hold(lock());
  const bool is_out = is_device(from) && !is_device(to);
  Piece piece{.kind = Piece::Kind::Copy, .name = is_out ? "a copy from the card" : "a copy to the card"};
  piece.touches.push_back({to, to + bytes, true});
  piece.touches.push_back({from, from + bytes, false});
  give(stream, std::move(piece), by == Calls::Driver);
}

void give_set(const void* stream, Address to, std::size_t bytes) {
  if (!checks_work() || bytes == 0 || active_capture(stream) != nullptr) return;
  const std::lock_guard hold(lock());
  Piece piece{.kind = Piece::Kind::Kernel, .name = "a memset"};
  piece.touches.push_back({to, to + bytes, true});
  give(stream, std::move(piece), false);
}

void finish_stream(const void* stream) {
  if (!checks_work()) return;
  const std::lock_guard hold(lock());
  for (const auto& [id, number] : all_of(stream)) finish_until(id, number);
}

void finish_all() {
  if (!checks_work()) return;
  const std::lock_guard hold(lock());
  for (auto& [id, queue] : work().queues) queue.pending.clear();
}

void forget_stream(const void* stream) {
  if (!checks_work()) return;
  const std::lock_guard hold(lock());
  finish_stream(stream);
  work().queues.erase(id_of(stream));
}

bool is_stream_finished(const void* stream) {
  if (!checks_work()) return true;
  const std::lock_guard hold(lock());
  return ask(all_of(stream));
}

std::shared_ptr<const WorkClock> clock_of(const void* stream) {
  if (!checks_work()) return nullptr;
  const std::lock_guard hold(lock());
  return std::make_shared<const WorkClock>(all_of(stream));
}

void order_after(const void* stream, const std::shared_ptr<const WorkClock>& clock) {
  if (!checks_work() || clock == nullptr) return;
  const std::lock_guard hold(lock());
  merge(queue_of(stream).clock, *clock);
}

void finish(const std::shared_ptr<const WorkClock>& clock) {
  if (!checks_work() || clock == nullptr) return;
  const std::lock_guard hold(lock());
  for (const auto& [id, number] : *clock) finish_until(id, number);
}

bool is_finished(const std::shared_ptr<const WorkClock>& clock) {
  if (!checks_work() || clock == nullptr) return true;
  const std::lock_guard hold(lock());
  return ask(*clock);
}

void check_unused(Address begin, std::size_t size, const char* what) {
  if (!checks_work()) return;
  const std::lock_guard hold(lock());
  for (const auto& [id, queue] : work().queues) {
    for (const Piece& piece : queue.pending) {
      for (const Touch& touch : piece.touches) {
        if (!touch.meets(begin, begin + size)) continue;
        return note_finding("the bytes at %#zx: %s of %zu bytes, while %s may still work on them", touch.begin, what,
                            size, piece.name);
      }
    }
  }
}

void note_finding(const char* format, ...) {
  if (!checks_work()) return;
  CardLedger& page = ledger();
  const std::uint64_t before = page.findings.fetch_add(1);
  if (before >= page.finding.size()) return;
  LedgerFinding& place = page.finding[before];
  va_list values;
  va_start(values, format);
  std::vsnprintf(place.text.data(), place.text.size(), format, values);
  va_end(values);
  place.set.store(1);
}

}  // namespace ullage::drycard
