// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this process holds of a card, as nvidia-smi shows it: its context, libraries' kernels and every allocator's
// memory, so that a budget can be kept on all of it.
//
//   |=== others, the driver ===|====== this process ======|........ free ........| total
//     as NVML said last          whatever else is used      as the driver says now
//
// NVML, the only one that knows processes apart, takes milliseconds, so it is asked now and then. In between all that
// changes counts as this process's: a budget is kept too well when others take some, and too badly, until the next
// question, by what they give back.

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
    OnlyEntry,  // it listed a single one, by another number: this one, seen from outside of its container
    Unknown,    // others() is as known before, and at first zero: all that is used counts as this process's
  };
  struct Knowledge {
    Way way = Way::Unknown;
    std::string reason;  // why others' share is unknown; else empty
  };
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // At the least. A question takes 4.5 ms on an RTX 4090 with driver 610, under a lock that all who allocate on the
  // card need (github.com/flightlessmango/MangoHud, pull request 2104).
  static constexpr std::chrono::milliseconds kBetweenQuestions{250};

  // The driver must outlive it. Asks NVML for the first time; whatever is wrong with that is in knowledge().
  static std::unique_ptr<CardUse> of(Driver& driver, const std::string& nvml = "libnvidia-ml.so.1",
                                     Clock clock = std::chrono::steady_clock::now);

  // A question to the driver, microseconds; to NVML too where that is due and no other thread asks it. A card that does
  // not answer any more holds what it held.
  Bytes now();
  // With what the driver keeps for itself.
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

  std::mutex asking_;  // for the next two; taken before the other
  std::chrono::steady_clock::time_point next_question_;
  std::optional<std::uint32_t> outer_pid_;  // this process's number in NVML's list, once found out

  mutable std::mutex mutex_;  // for what follows
  Bytes used_;
  Bytes others_;
  Knowledge knowledge_;
};

}  // namespace ullage::cuda
