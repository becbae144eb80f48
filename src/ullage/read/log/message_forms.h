// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wordings of lack of memory, as data: which words give a message away (lead), what else may stand in it (clauses,
// most of them with figures) and which versions of PyTorch write it so. How patterns are written: message_pattern.h.
// A new wording is a new row. tests/data/messages holds an example of each with the figures it must give.

#include "ullage/trace/recording/out_of_memory.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ullage::read {

using MessageFigure = std::optional<Bytes> trace::OutOfMemory::*;

// What was seen in a message, to tell versions apart.
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
  kFree = 1 << 9,            // a figure of what is free
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
  std::array<MessageFigure, 2> figures{};  // what its sizes are, in order; a size behind a ^ is that process's
  std::uint32_t marks = 0;
  bool add = false;  // the size adds to the figure: parts of the resident size of a killed process
};

enum LeadPlace : std::uint8_t {
  kAtLineBegin = 1,  // prefixes aside
  kAtLineEnd = 2,
  kNoDigitBehind = 4,
  kWithError = 8,         // the line must speak of an error, too
  kOrColonBehind = 16,    // with kAtLineEnd: a colon will do
  kWithOutOfMemory = 32,  // the rest of the line must say "out of memory"
  kTail = 128,            // words from the midst of a message, whose beginning may stand on the line before
  kNoName = 64            // not as part of a name: "torch.OutOfMemoryError"
};

struct Lead {
  std::string_view pattern;
  trace::Teller teller;
  std::string_view form;  // where versions differ (Version), the beginning of the form's name
  std::string_view torch;
  std::span<const Clause> clauses;
  std::uint8_t place = 0;
};

// The wording of one teller changed over time: the first row whose marks are all there says which it is.
struct Version {
  std::string_view lead_form;
  std::uint32_t all;
  std::string_view form;
  std::string_view torch;
};

// Rows that are more particular stand before those that are less.
std::span<const Lead> leads();
// The leads that may begin with these two lower-case letters, in order, as indices of leads(); -1 ends them.
int first_lead(char letter, char second);
int next_lead(int lead, char second);
std::span<const Version> versions();

}  // namespace ullage::read
