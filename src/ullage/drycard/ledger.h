// SPDX-License-Identifier: Apache-2.0
#pragma once

// The account of a dry card: a file that the launcher makes and maps, and that every process of the program writes
// live, so that it says what was taken also after _exit, abort or a kill.
//
//   launcher: a zeroed file of sizeof(CardLedger) bytes, its path in ULLAGE_DRYCARD_LEDGER -> wait -> read
//   program:  maps the file at its first CUDA call; makes it if it is not there; a file of another layout is left alone
//             and the program keeps a private account
//
// Every field is an atomic word; there are no locks, because a writer may die at any instruction. All sizes are bytes.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ullage::drycard {

using LedgerWord = std::atomic<std::uint64_t>;
static_assert(LedgerWord::is_always_lock_free);

inline constexpr std::size_t kMostCards = 16;

// What one card had to give and gave.
struct LedgerCard {
  LedgerWord total{0};       // as the driver reports it; 0: no process has looked at the card
  LedgerWord context{0};     // of each process that uses the card, in `taken` and not in `used`
  LedgerWord used{0};        // of all living processes, at the last change
  LedgerWord peak{0};        // the most that `used` was
  LedgerWord taken_peak{0};  // the most of `used` and the contexts together: what nvidia-smi would have shown
  LedgerWord largest{0};     // the largest single request that was granted
  LedgerWord managed{0};     // of `used`, what cudaMallocManaged gave (it has host memory behind it, where touched)
  LedgerWord processes{0};   // that have made a context on it
};

// What one living process holds. The slot of a process that is gone is taken by the next.
struct LedgerProcess {
  std::atomic<std::int32_t> pid{0};  // 0: free
  std::atomic<std::uint32_t> reserved{0};
  std::array<LedgerWord, kMostCards> used{};
  std::array<LedgerWord, kMostCards> context{};
};

// The name of a function that the program called and the card has no implementation of. `set` is written last.
struct LedgerName {
  static constexpr std::size_t kLength = 80;
  std::atomic<std::uint32_t> set{0};  // 0: free, 1: being written, 2: there
  std::array<char, kLength> text{};   // ends with a zero; longer names are cut
};

struct CardLedger {
  static constexpr std::uint64_t kMagic = 0x6472'6163'7972'6455;  // "Udrycard"
  static constexpr std::uint32_t kLayout = 2;
  static constexpr std::size_t kNames = 64;
  static constexpr std::size_t kProcesses = 64;

  LedgerWord magic{0};  // kMagic, written by the launcher or by the first process
  std::atomic<std::uint32_t> layout{0};
  std::atomic<std::uint32_t> cards{0};  // how many are in the machine; 0: no process has looked

  LedgerWord refused{0};          // requests for device memory that did not fit
  LedgerWord refused_request{0};  // bytes of the last of them, as the program asked
  LedgerWord refused_card{0};     // and its card
  LedgerWord pinned{0};           // host memory that is locked: cudaHostAlloc, cudaHostRegister
  LedgerWord pinned_peak{0};
  LedgerWord launches{0};  // kernels that would have run, of graphs too
  LedgerWord reads{0};     // copies from a card to the host: of bytes that nobody knows, zeros were given
  LedgerWord read_bytes{0};
  LedgerWord synchronized{0};      // waits for a stream, an event or a card
  LedgerWord processes{0};         // that have made a context on some card
  LedgerWord unknown_calls{0};     // of functions without an implementation
  LedgerWord unanswered_plans{0};  // of cuDNN, whose workspace counts as none: the real library was not there
  LedgerWord unanswered_rnns{0};   // calls of recurrent networks of cuDNN, whose spaces count as none

  std::array<LedgerCard, kMostCards> card;
  std::array<LedgerProcess, kProcesses> process;
  std::array<LedgerName, kNames> unknown;  // in the order of their first call; each name once
};
static_assert(std::is_standard_layout_v<CardLedger>);

}  // namespace ullage::drycard
