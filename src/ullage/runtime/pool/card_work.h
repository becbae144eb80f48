// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides the work that a card was given by points in time. To move bytes, it is then enough to wait for the work on
// these bytes instead of for all work:
//
//   ops     a b c | d e f | g h i | j k        a point is an event on every stream that ops have used;
//   points        1       2       3            x was last used by e: to take x away, wait for point 2,
//                                              while g to k go on
//
// A use is noted under the next point, which comes after it. Bytes without a noted use count as used just now. A
// collective of torch.distributed works on a stream of its own, which no point covers. To move bytes that one has used
// since their pages were mapped, all work of the card is waited for.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/cuda/driver.h"
#include "ullage/cuda/last_uses.h"

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace ullage::runtime {

// Thread-safe.
class CardWork final : public cuda::Work {
 public:
  explicit CardWork(c10::Device device) : device_(device) {}

  // An op of this thread has ended. Its work was given to the stream that is current on this thread.
  void op_ended();
  // Work was given to this stream too, outside of the ops that are seen (Tensor.record_stream).
  void stream_used(const c10::Stream& stream);
  bool has_several_streams();
  // A capture of work begins or ends; captures nest. Meanwhile no events are made: they would be part of the capture.
  void captures(bool begin);
  // The work given so far may touch these bytes.
  void used(Address at, Bytes size);
  // While one exists, uses that this thread notes are those of a collective.
  class InCollective {
   public:
    explicit InCollective(bool is_one);
    ~InCollective();
    InCollective(const InCollective&) = delete;
    InCollective& operator=(const InCollective&) = delete;
  };

  bool done(Address at, Bytes size) override;
  void fresh(Address at, Bytes size) override;

 private:
  using Point = cuda::LastUses::Point;
  using Lock = std::unique_lock<std::mutex>;
  static constexpr Point kUnseen = ~Point{0};  // of a collective's work
  using Events = std::vector<c10::Event>;      // one for each stream

  void add_stream(const c10::Stream& stream);
  bool mark();

  const c10::Device device_;
  std::mutex lock_;
  std::vector<c10::Stream> streams_;
  cuda::LastUses uses_;
  std::deque<std::shared_ptr<const Events>> events_;  // of the points from first_ on
  Point first_ = 1;
  Point next_ = 1;  // not marked yet
  Point done_ = 0;  // the work up to this point is done
  int ops_ = 0;     // since the last mark
  int captures_ = 0;
  bool any_collective_ = false;
  bool broken_ = false;  // the device takes no more events: no later work can be waited for
};

}  // namespace ullage::runtime
