// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures what this process holds of a card, as nvidia-smi shows it: its context, the kernels of libraries, and the
// memory of every allocator. So a budget can be kept on all of it.
//
//   |=== others, the driver ===|====== this process ======|........ free ........| total
//     as NVML said last          whatever else is used      as the driver says now
//
// Only NVML can tell processes apart. It takes milliseconds, so it is asked only now and then. In between, every change
// counts as this process's. If others take memory, too much counts as this process's, which then keeps below its budget
// more than it must. If others give memory back, too little counts until NVML is asked again.

#include "ullage/base/bytes.h"
#include "ullage/cuda/driver.h"
#include "ullage/cuda/nvml.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cuda {

// Thread-safe.
class CardUse final {
 public:
  enum class Way {
    OwnEntry,   // NVML lists this process
    OnlyEntry,  // NVML listed a single process by another pid: this one, as seen from outside of its container
    Unknown,    // others() is what was known before; at first zero: all used bytes count as this process's
  };
  struct Knowledge {
    Way way = Way::Unknown;
    std::string reason;  // why others' share is unknown; else empty
  };
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // The least time between two questions to NVML. One query takes 4.5 ms on an RTX 4090 with driver 610. It holds a
  // lock that every allocation on the card needs (github.com/flightlessmango/MangoHud, pull request 2104).
  static constexpr std::chrono::milliseconds kBetweenQuestions{250};

  // `driver` must outlive the result. Asks NVML for the first time; if that fails, knowledge() has the reason.
  static std::unique_ptr<CardUse> of(Driver& driver, const std::string& nvml = "libnvidia-ml.so.1",
                                     Clock clock = std::chrono::steady_clock::now);

  // Returns what this process holds of the card. Asks the driver (microseconds), and NVML too if that is due and no
  // other thread is asking it. If the card does not answer any more, its last answer counts.
  Bytes now();
  // The bytes of the card that other processes hold, plus those that the driver keeps for itself.
  Bytes others() const;
  Knowledge knowledge() const;

 private:
  struct Found {
    Knowledge knowledge;
    Bytes own;
  };

  CardUse(Driver& driver, Clock clock) : driver_(driver), clock_(std::move(clock)) {}

  Bytes used();
  void ask();
  Found find(const std::vector<Nvml::Process>& listed);

  Driver& driver_;
  const Clock clock_;
  std::unique_ptr<Nvml> nvml_;  // null: not to be asked

  std::mutex asking_;  // guards the next two; taken before mutex_
  std::chrono::steady_clock::time_point next_question_;
  std::optional<std::uint32_t> outer_pid_;  // this process's pid in NVML's list, once found out

  mutable std::mutex mutex_;  // guards what follows
  Bytes used_;
  Bytes others_;
  Knowledge knowledge_;
};

}  // namespace ullage::cuda
