// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a file is, told from its first bytes and a few words in it: one of the kinds that can be explained, or one that
// people often have at hand instead, so that the refusal can say what was given and what is wanted.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace ullage::read {

enum class ContentKind { Gzip, Snapshot, Profile, Trace, Text, WideText };

// What it is, "a PNG picture", and, where there is something better than the general advice, what to do.
struct ForeignContent {
  std::string_view what;
  std::string_view advice;
};

inline constexpr std::string_view kWanted =
    "wanted is a memory snapshot (torch.cuda.memory._dump_snapshot), a trace of `ullage run --record`, a profiler "
    "trace "
    "with memory events, a log with an out-of-memory error, or a printed memory summary";

std::variant<ContentKind, ForeignContent> kind_of(std::span<const std::byte> content);

// UTF-16 with a byte order mark (what PowerShell's `>` writes) as UTF-8. What is no character becomes '?'.
std::string narrow(std::span<const std::byte> wide);

}  // namespace ullage::read
