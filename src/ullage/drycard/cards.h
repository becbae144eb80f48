// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cards that a dry card can be: what a driver and the runtime say of them. Pure data, for the library that stands
// in for the card and for the command that names one.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ullage::drycard {

// Bytes unless said otherwise. What programs take memory by stands here: launch configurations and scratch depend on
// multiprocessors, threads and shared memory; kernels are chosen by the compute capability.
struct CardModel {
  std::string_view name;     // by which it is asked for: "a100-80gb"
  std::string_view product;  // as the driver names it: "NVIDIA A100-SXM4-80GB"
  std::uint64_t total;       // as cudaMemGetInfo and torch report it, less than what the data sheet says
  std::uint64_t context;     // what a process takes before its first tensor
  int major, minor;          // compute capability
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_per_block_optin;
  int shared_per_multiprocessor;
  int l2;
  int clock_khz;         // of the multiprocessors, boost
  int memory_clock_khz;  // as the runtime reports it: half of the transfers per second
  int bus_bits;
  bool ecc;
  int copy_engines;
  int pci_device;  // the device's id on the bus, without the vendor's

  static constexpr int kSharedPerBlock = 48 * 1024;
  static constexpr int kRegisters = 65536;  // per block and per multiprocessor, of all of them
};

// Names in any case, "NVIDIA" and "GeForce" and blanks left out: "RTX 3090", "rtx3090" and "A100_80GB" will do.
std::optional<CardModel> find_card(std::string_view name);

// A card of which only the size is known: like an A100 with that memory.
CardModel card_of_size(std::uint64_t total);

// Every name that find_card knows in its short form, in the order of the table.
std::vector<std::string_view> card_names();

}  // namespace ullage::drycard
