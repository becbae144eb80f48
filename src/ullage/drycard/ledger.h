// SPDX-License-Identifier: Apache-2.0
#pragma once

// The account of a dry card. It is a file that the launcher makes and every process of the program maps and writes
// while it runs. So it says what was taken also after _exit, abort or a kill.
//
//   launcher: a zeroed file of sizeof(CardLedger) bytes, its path in ULLAGE_DRYCARD_LEDGER -> wait -> read
//   program:  maps the file at its first CUDA call, and makes it if it is missing. If the file has another layout,
//             leaves it alone and keeps a private account
//
// Every field but the texts is an atomic word. There are no locks, because a writer may die at any instruction. All
// sizes are bytes.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ullage::drycard {

using LedgerWord = std::atomic<std::uint64_t>;
static_assert(LedgerWord::is_always_lock_free);

inline constexpr std::size_t kMostCards = 16;

// One card: its memory, and the bytes that were taken of it.
struct LedgerCard {
  LedgerWord total{0};       // as the driver reports it; 0: no process has used CUDA yet
  LedgerWord context{0};     // of each process that uses the card; in `taken_peak`, not in `used`
  LedgerWord used{0};        // bytes that all living processes held at the last change
  LedgerWord peak{0};        // the peak of `used`
  LedgerWord taken_peak{0};  // the peak of `used` and the contexts together: what nvidia-smi would have shown
  LedgerWord largest{0};     // the largest single request that was granted
  LedgerWord managed{0};     // the part of `used` from cudaMallocManaged (touched pages also take host memory)
  LedgerWord processes{0};   // how many processes made a context on it
};

// The bytes that one living process holds. The next process takes over the slot of one that is gone.
struct LedgerProcess {
  std::atomic<std::int32_t> pid{0};        // 0: free
  std::atomic<std::uint32_t> reserved{0};  // unused
  std::array<LedgerWord, kMostCards> used{};
  std::array<LedgerWord, kMostCards> context{};
};

// The name of a function that the program called and the card does not implement. `set` is written last.
struct LedgerName {
  static constexpr std::size_t kLength = 80;
  std::atomic<std::uint32_t> set{0};  // 0: free, 1: being written, 2: there
  std::array<char, kLength> text{};   // ends with a zero; longer names are cut
};

// With checks: an error that would have corrupted data or crashed on a real card (card/work.h), or a refused request.
// `set` is written last.
struct LedgerFinding {
  std::atomic<std::uint32_t> set{0};  // 0: free or being written, 1: there
  std::array<char, 252> text{};       // ends with a zero
};

struct CardLedger {
  static constexpr std::uint64_t kMagic = 0x6472'6163'7972'6455;  // "Udrycard"
  static constexpr std::uint32_t kLayout = 4;
  static constexpr std::size_t kNames = 64;
  static constexpr std::size_t kProcesses = 64;

  LedgerWord magic{0};  // kMagic, written by the first process that maps the file
  std::atomic<std::uint32_t> layout{0};
  std::atomic<std::uint32_t> cards{0};  // cards in the machine; 0: no process has used CUDA yet

  LedgerWord refused{0};          // requests for device memory that did not fit
  LedgerWord refused_request{0};  // bytes of the last of them, as the program asked
  LedgerWord refused_card{0};     // the card of that request
  LedgerWord pinned{0};           // pinned host memory: cudaHostAlloc, cudaHostRegister
  LedgerWord pinned_peak{0};
  LedgerWord launches{0};  // kernels that would have run, also those of graphs
  LedgerWord reads{0};     // copies of unknown bytes from a card to the host, which gave zeros
  LedgerWord read_bytes{0};
  LedgerWord synchronized{0};   // waits for a stream, an event or a card
  LedgerWord processes{0};      // processes that made a context on some card
  LedgerWord unknown_calls{0};  // of functions that are not implemented and do more than compute (card/unknown.h)
  // Plans of cuDNN whose workspace counts as 0, because the real library is missing or cannot plan without a card.
  LedgerWord unanswered_plans{0};
  LedgerWord unanswered_rnns{0};  // calls of cuDNN's recurrent networks, whose spaces count as 0

  std::array<LedgerCard, kMostCards> card;
  std::array<LedgerProcess, kProcesses> process;
  LedgerWord findings{0};
  LedgerWord unread_launches{0};  // launches whose arguments could not be looked at, in runs with checks
  // Kernels that were launched, each once in a process, and their code: what a real card loads at first launches.
  LedgerWord kernels{0};
  LedgerWord kernel_code{0};
  std::array<LedgerFinding, 16> finding;   // the first ones
  std::array<LedgerName, kNames> unknown;  // each name once, in the order of the first calls
};
static_assert(std::is_standard_layout_v<CardLedger>);

}  // namespace ullage::drycard
