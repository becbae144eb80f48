// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts that install() registers, and the counters that they share.

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>

namespace card_torch {

inline const c10::Device kCard{c10::DeviceType::CUDA, 0};

struct Counters {
  std::atomic<std::uint64_t> live_bytes, live_bytes_peak, ops, draws, events_recorded, events_blocked, synchronizations,
      streams_recorded;
};
Counters& counters();

void register_guard();      // card_guard.cpp: devices, streams, events
void register_hooks();      // card_hooks.cpp: what torch asks of CUDA besides ops
void register_kernels();    // card_kernels.cpp: ops
void register_recurrent();  // card_recurrent.cpp: the cells of LSTM and GRU

}  // namespace card_torch
