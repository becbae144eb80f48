// SPDX-License-Identifier: Apache-2.0
#pragma once

// The dry card of one process: what the environment says of it, the ledger, the address space, and which card each
// thread uses. Nothing of this exists before the first CUDA call, because the library stands in every process below the
// launcher, shells and compilers too.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/cards.h"
#include "ullage/drycard/ledger.h"

#include <mutex>

namespace ullage::drycard {

// Of the environment, read once:
//   ULLAGE_DRYCARD_CARD    a name of cards.h; without one, or "cuda": a card like an A100
//   ULLAGE_DRYCARD_MEMORY  bytes in all, in place of the table's
//   ULLAGE_DRYCARD_COUNT   how many of these cards (1)
//   ULLAGE_DRYCARD_CUDA    12 or 13 (13): which runtime the program was built for
//   ULLAGE_DRYCARD_LEDGER  path of the account (ledger.h)
//   ULLAGE_DRYCARD_CUDNN, ULLAGE_DRYCARD_NCCL  the versions that those say (92000, 22907): torch holds cuDNN's against
//                          the one that it was built with
//   CUDA_VISIBLE_DEVICES   as the driver reads it: numbers and UUIDs, up to the first that is no card
struct Machine {
  CardModel model;
  int cards = 1;              // in the machine
  int visible = 1;            // to this process
  int card_of[kMostCards]{};  // ordinal -> number in the machine
  int cuda = 13;
  int version() const { return cuda * 1000 + (cuda == 12 ? 90 : 0); }  // CUDART_VERSION
};

const Machine& machine();
CardLedger& ledger();

// Everything of the memory and the handles of this process is changed under this lock.
std::recursive_mutex& lock();

// This process uses the card: it has a context there, as from the first call on that a real card needs one for.
// kNotInitialized in a child by fork of a process that used one; kOutOfMemory where the context does not fit.
Error use_card(int ordinal);
Error use_current();
bool uses_card(int ordinal);

int current_card();  // the ordinal that this thread uses
Error set_current_card(int ordinal);

// The part of the address space that is the card's, once one is used.
struct Span {
  Address begin = 0;
  Address end = 0;
};
Span span_of(int ordinal);
bool is_device(Address at);
int card_of_address(Address at);  // the ordinal of the part that it is in; -1: none

// Takes the bytes from what the card has left for all processes; false: they do not fit, and the refusal is noted with
// the bytes that the program asked for.
bool charge(int ordinal, std::uint64_t bytes, std::uint64_t asked);
void discharge(int ordinal, std::uint64_t bytes);
std::uint64_t free_bytes(int ordinal);
// What this process holds on a card of the machine, with its context.
std::uint64_t own_bytes(int card);
std::uint64_t taken_bytes(int card);  // all processes

void raise(LedgerWord& peak, std::uint64_t value);

// Each thread's last error, as cudaGetLastError gives it. Returns what it was given.
Error noted(Error error);
Error take_last_error();
Error last_error();

}  // namespace ullage::drycard
