// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much of the stated bytes is the pool's. The person states what the operating system shows of the whole process,
// so the pool gets what is left beside everything else the process holds:
//
//   stated  |== pool ==================|== outside: libraries, stacks, JIT code, decoders ==|= margin =|
//                                        the larger of what is measured and what is expected
//
// Expected: torch holds about 110 MiB after its first op, which the runtime calls (runtime/vector_math.h), and touches
// about 24 MiB more in its first steps (library pages, oneDNN's generated code), whatever the batch; so 35 MiB are set
// aside from the start instead of being missed later. In Python the first optimizer imports 72 MiB more of torch's
// modules (sympy is the largest). Margin: what may come between two looks, and the kernel's own counting error (it
// counts pages per processor and adds up in batches of 32 to 64).

#include "ullage/base/bytes.h"
#include "ullage/store/store.h"

#include <atomic>
#include <functional>

namespace ullage::store {

class Budget final : public Limit {
 public:
  static constexpr Bytes kWarmUp = 35_MiB;
  static constexpr Bytes kWarmUpInPython = 112_MiB;
  static constexpr Bytes kMargin = 8_MiB;

  // `stated` of zero: unlimited. `outside_start`: what the process holds now, before the pool has a byte. `warm_up`:
  // what it will take in its first steps. `resident`: resident bytes of the process now. `others`: the same of the
  // tree's other processes.
  Budget(Bytes stated, Bytes outside_start, Bytes warm_up, std::function<Bytes()> resident,
         std::function<Bytes()> others);

  // The least stated bytes with which a pool of nothing can start.
  static Bytes least(Bytes outside_start, Bytes warm_up) { return outside_start + warm_up + kMargin; }

  Bytes resident_limit(Bytes pool_resident) override;

  // What the process held outside the pool when the limit was asked for last.
  Bytes outside() const { return Bytes{outside_.load()}; }
  // The most it ever was when the limit was asked for.
  Bytes outside_peak() const { return Bytes{outside_peak_.load()}; }
  // The most that was ever to be kept beside the pool: the outside, the margin, the other processes.
  Bytes beside_peak() const { return Bytes{beside_peak_.load()}; }
  // What is set aside for the outside at least: measured at the start, plus warm-up, plus charges.
  Bytes expected_outside() const { return expected_outside_ + Bytes{charged_.load()}; }

  // By how many bytes the stated ones are too few for a pool of `pool_resident`; zero when they do.
  Bytes short_by(Bytes pool_resident);

  // Bytes that someone outside the pool is about to take, and later returns.
  void charge(Bytes bytes);
  void discharge(Bytes bytes);

  Bytes stated() const { return Bytes{stated_.load()}; }
  bool unlimited() const { return stated() == Bytes{}; }
  // From the next look on.
  void restate(Bytes stated) { stated_.store(stated.count); }

 private:
  Bytes beside_the_pool(Bytes pool_resident);

  std::atomic<std::uint64_t> stated_;
  const Bytes expected_outside_;
  const std::function<Bytes()> resident_;
  const std::function<Bytes()> others_;
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> outside_;
  std::atomic<std::uint64_t> outside_peak_{0};
  std::atomic<std::uint64_t> beside_peak_{0};
};

}  // namespace ullage::store
