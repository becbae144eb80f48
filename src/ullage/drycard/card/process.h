// SPDX-License-Identifier: Apache-2.0
#pragma once

// The dry card as one process sees it: what the environment says, the ledger, the address space, and the card of each
// thread. Nothing of this is created before the first CUDA call. The library is loaded into every process below the
// launcher, also into shells and compilers.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/cards.h"
#include "ullage/drycard/ledger.h"

#include <algorithm>
#include <mutex>

namespace ullage::drycard {

// The machine that the program sees. It is read once from the environment:
//   ULLAGE_DRYCARD_CARD    a name of cards.h; if not set or unknown ("cuda"): a card like an A100 of 80 GB
//   ULLAGE_DRYCARD_MEMORY  total bytes of each card, instead of the table's
//   ULLAGE_DRYCARD_REFUSES 0: the cards state that total, but serve every request, to show what a program needs
//   ULLAGE_DRYCARD_COUNT   how many of these cards there are, 0 to 16; if not set: 1
//   ULLAGE_DRYCARD_CUDA    11 to 13, or "12.1": the runtime that the program was built for; if not set: 13
//   ULLAGE_DRYCARD_LEDGER  path of the account (ledger.h)
//   ULLAGE_DRYCARD_CUDNN, ULLAGE_DRYCARD_NCCL  the versions that these libraries state; if not set: 99999, 22907.
//                          torch compares cuDNN's with the one that it was built with
//   ULLAGE_DRYCARD_CUDNN_LIBRARY  path of the real libcudnn_graph (cudnn_library.h)
//   CUDA_VISIBLE_DEVICES   as the driver reads it: numbers and UUIDs, up to the first that names no card
struct Machine {
  CardModel model;
  int cards = 1;              // cards in the machine
  int visible = 1;            // those that this process sees
  bool refuses = true;        // false: more than `model.total` may be taken
  int card_of[kMostCards]{};  // ordinal -> number in the machine
  int cuda = 13;              // whose structs are written: 12 or 13
  int version = 13000;        // of the runtime, as CUDART_VERSION states it
  int driver_version() const { return std::max(version, newest_known()); }
  int newest_known() const { return cuda == 12 ? 12090 : 13000; }  // of that CUDA
};

const Machine& machine();
CardLedger& ledger();

// Guards all memory and all handles of this process.
std::recursive_mutex& lock();

// Makes this process's context on the card and charges its bytes, unless there is one. A real card needs a context from
// the same calls on. kNotInitialized: this is a child by fork of a process that used a card. kOutOfMemory: the context
// does not fit. kNoDevice or kInvalidDevice: there is no such card.
Error use_card(int ordinal);
Error use_current();
bool uses_card(int ordinal);

int current_card();  // the ordinal that this thread uses
// Makes no context. Errors are those of use_card(), but for kOutOfMemory.
Error set_current_card(int ordinal);

// The part of the address space that belongs to a card. It is known once this process uses a card.
struct Span {
  Address begin = 0;
  Address end = 0;
};
Span span_of(int ordinal);
bool is_device(Address at);
int card_of_address(Address at);  // ordinal of the card whose part it is in; -1: none

// Takes `bytes` from what the card has left for all processes. Returns false if they do not fit, and notes the refusal
// with the `asked` bytes that the program wanted. The process must use the card.
bool charge(int ordinal, std::uint64_t bytes, std::uint64_t asked);
void discharge(int ordinal, std::uint64_t bytes);
std::uint64_t free_bytes(int ordinal);
// Bytes that this process holds on a card, with its context. Here `card` is the number in the machine, not the ordinal.
std::uint64_t own_bytes(int card);
std::uint64_t taken_bytes(int card);  // the same for all processes

// Raises `peak` to `value` if it is below.
void raise(LedgerWord& peak, std::uint64_t value);

// Each thread's last error, which cudaGetLastError returns. noted() stores an error other than success and returns its
// argument.
Error noted(Error error);
Error take_last_error();
Error last_error();

}  // namespace ullage::drycard
