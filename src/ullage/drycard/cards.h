// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cards that a dry card can pretend to be: what the driver and the runtime say of them. This is pure data, used by
// the library that stands in for the card and by the command that names one. A new card is a row in cards.cpp.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ullage::drycard {

// Sizes are bytes. These figures decide how much memory a program takes. Launches and scratch depend on
// multiprocessors, threads and shared memory. The compute capability decides which kernels are chosen.
struct CardModel {
  std::string_view name;     // the name to ask for: "a100-80gb"
  std::string_view product;  // as the driver names it: "NVIDIA A100-SXM4-80GB"
  std::uint64_t total;       // as cudaMemGetInfo and torch report it; less than the data sheet says
  std::uint64_t context;     // what a process holds before its first tensor
  int major, minor;          // compute capability
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_per_block_optin;
  int shared_per_multiprocessor;
  int l2;
  int clock_khz;         // boost clock of the multiprocessors
  int memory_clock_khz;  // as the runtime reports it: half the transfers per second
  int bus_bits;
  double fp32_tflops, half_tflops;  // data sheet, dense; half: fp16 and bf16 in tensor cores, adding up in fp32
  bool ecc;
  int copy_engines;
  int pci_device;  // the PCI device id, without the vendor's

  // Bytes per second of the card's memory: two transfers a clock.
  double memory_rate() const { return 2e3 * memory_clock_khz * bus_bits / 8; }
  // Operations per second in TF32: half of what the tensor cores do in half precision; cards before 8.0 have none.
  double tf32_rate() const { return major >= 8 ? half_tflops * 1e12 / 2 : fp32_tflops * 1e12; }

  static constexpr int kSharedPerBlock = 48 * 1024;
  static constexpr int kRegisters = 65536;  // per block and per multiprocessor; the same on all cards
};

// Finds a card by its name. Case, blanks and other signs between letters and digits do not matter, nor do "NVIDIA",
// "Tesla" and "GeForce" in front: "RTX 3090", "rtx3090" and "A100_80GB" work. Nothing if the table has no such card.
std::optional<CardModel> find_card(std::string_view name);

// Returns a card for which only the memory is given: an A100 with that memory.
CardModel card_of_size(std::uint64_t total);

// Returns the short names that find_card knows, in the order of the table.
std::vector<std::string_view> card_names();

}  // namespace ullage::drycard
