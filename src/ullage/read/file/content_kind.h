// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the kind of a file from its first bytes and a few words in it. The kind is one that Ullage can explain, or a
// foreign one that people often give by mistake. For a foreign kind the refusal can then say what was given and what is
// wanted. To name another foreign kind, add a row to kSignatures in content_kind.cpp.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace ullage::read {

enum class ContentKind { Gzip, Snapshot, Profile, Trace, Text, WideText };

// `what` names the kind ("a PNG picture"). `advice` says what to do instead, beside kWanted; it may be empty.
struct ForeignContent {
  std::string_view what;
  std::string_view advice;
};

inline constexpr std::string_view kWanted =
    "wanted is a memory snapshot (torch.cuda.memory._dump_snapshot), a trace of `ullage run --record`, a profiler "
    "trace "
    "with memory events, a log with an out-of-memory error, or a printed memory summary";

std::variant<ContentKind, ForeignContent> kind_of(std::span<const std::byte> content);

// Converts UTF-16 with a byte order mark (PowerShell's `>` writes it) to UTF-8. A lone surrogate becomes '?'. An odd
// last byte is left out.
std::string narrow(std::span<const std::byte> wide);

}  // namespace ullage::read
