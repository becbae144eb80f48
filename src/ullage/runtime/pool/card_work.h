// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a card was given to do, as a row of points, so that who moves bytes waits for the work on these bytes and not
// for everything:
//
//   ops     a b c | d e f | g h i | j k        a point is an event on every stream that ops have used;
//   points        1       2       3            x was used last by e: who takes it away waits for point 2,
//                                              while g to k go on
//
// A use is noted under the next point, which comes after it. What nobody noted was used just now.

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

  // An op of this thread has ended: its work is given to the stream that is current here.
  void op_ended();
  // Work was given to this stream too, by somebody who only says so (Tensor.record_stream).
  void stream_used(const c10::Stream& stream);
  bool has_several_streams();
  // Work is captured: an event on its streams would be a part of it. Nested.
  void captures(bool begin);
  // The work given so far may touch these.
  void used(Address at, Bytes size);

  bool done(Address at, Bytes size) override;
  void fresh(Address at, Bytes size) override;

 private:
  using Point = cuda::LastUses::Point;
  using Lock = std::unique_lock<std::mutex>;
  using Events = std::vector<c10::Event>;  // one for each stream

  void add_stream(const c10::Stream& stream);
  bool mark();

  const c10::Device device_;
  std::mutex lock_;
  std::vector<c10::Stream> streams_;
  cuda::LastUses uses_;
  std::deque<std::shared_ptr<const Events>> events_;  // of points first_ and on
  Point first_ = 1;
  Point next_ = 1;  // not marked yet
  Point done_ = 0;  // all up to here are over
  int ops_ = 0;     // since the last mark
  int captures_ = 0;
  bool broken_ = false;  // the device takes no more events: nothing is known from here on
};

}  // namespace ullage::runtime
