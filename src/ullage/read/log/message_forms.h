// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wordings of out-of-memory messages, as data. The words that identify a wording are its lead. The other parts that
// a message of this wording may have are its clauses; most of them have numbers of bytes. Each wording also names the
// versions of PyTorch that print it. How patterns are written: message_pattern.h. To support a new wording, add a row
// to message_forms.cpp, or to message_general.h if many programs use it. If the lead has no trigger word, add one to
// log_triggers.cpp. Add an example with its figures to tests/data/messages.

#include "ullage/trace/recording/out_of_memory.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ullage::read {

using MessageFigure = std::optional<Bytes> trace::OutOfMemory::*;

// Parts of a message by which the versions of PyTorch that print it are told apart.
enum Mark : std::uint32_t {
  kCached = 1 << 0,          // "cached"
  kReservedTotal = 1 << 1,   // "reserved in total by PyTorch"
  kSplitHint = 1 << 2,       // "try setting max_split_size_mb"
  kMisspelt = 1 << 3,        // "capacty"
  kCapacityOf = 1 << 4,      // "has a total capacity of"
  kExpandHint = 1 << 5,      // "expandable_segments:True"
  kNewSetting = 1 << 6,      // "PYTORCH_ALLOC_CONF"
  kPrivatePools = 1 << 7,    // "allocated in private pools"
  kAllowed = 1 << 8,         // "allowed;"
  kFree = 1 << 9,            // any clause that states how much is free
  kCudaClass = 1 << 10,      // torch.cuda.OutOfMemoryError
  kTorchClass = 1 << 11,     // torch.OutOfMemoryError
  kDecimalLabel = 1 << 12,   // a size written GB, MB or KB
  kHipSetting = 1 << 13,     // "PYTORCH_HIP_ALLOC_CONF"
  kBeyondOneEb = 1 << 14,    // "more than 1EB"
  kRequested = 1 << 15,      // "Tried to allocate", with a size
  kEmptyCacheHint = 1 << 16  // "Please use `empty_cache`"
};

struct Clause {
  std::string_view pattern;
  // Which figure each size of the pattern sets, in order. If the pattern has a process number (^), a size without a
  // figure is that process's and goes to OutOfMemory::processes.
  std::array<MessageFigure, 2> figures{};
  std::uint32_t marks = 0;
  // The size is added to the figure. The kernel prints the resident bytes of a killed process in three parts (anon-rss,
  // file-rss, shmem-rss), which are summed up.
  bool add = false;
};

// Conditions on the place of a lead.
enum LeadPlace : std::uint16_t {
  kAtLineBegin = 1,  // after a logger's prefix, if there is one
  kAtLineEnd = 2,
  kNoDigitBehind = 4,
  kWithError = 8,         // the line must also have a word such as "error", "failed" or "abort"
  kOrColonBefore = 256,   // with kAtLineBegin: a label before it is enough, "Error message: "
  kOrColonBehind = 16,    // with kAtLineEnd: a colon after it is enough
  kNoColonBehind = 512,   // no colon after it, on the next line either: the message may be wrapped there
  kWithOutOfMemory = 32,  // the rest of the line must say "out of memory"
  kTail = 128,            // words from the middle of a message; its beginning may stand on a line above
  kNoName = 64            // not as a part of a name such as "torch.OutOfMemoryError"
};

struct Lead {
  std::string_view pattern;
  trace::Teller teller;    // the library that prints it
  std::string_view form;   // name of the wording, unless a Version names it more exactly
  std::string_view torch;  // the versions of PyTorch that print it: "2.2 to 2.4"
  std::span<const Clause> clauses;
  std::uint16_t place = 0;                  // LeadPlace, joined by |
  trace::Limit limit = trace::Limit::None;  // whose limit the wording names, if it names one
};

// Names a wording more exactly than its lead. A message gets `form` and `torch` of the first row whose lead_form is its
// lead's and whose marks (`all`) it has all.
struct Version {
  std::string_view lead_form;
  std::uint32_t all;
  std::string_view form;
  std::string_view torch;
};

// More specific rows stand before less specific ones, because the first match counts.
std::span<const Lead> leads();
// Iterate over the leads that may begin with these two lower-case letters, in order. Return an index of leads(), or -1
// at the end.
int first_lead(char letter, char second);
int next_lead(int lead, char second);
std::span<const Version> versions();

}  // namespace ullage::read
