// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words by which a plan's file (docs/cli.md, "The plan as JSON") names outcomes and actions. plan_file.cpp writes
// them, plan_file_reader.cpp reads them. A new outcome or action needs a word at its index.

#include "ullage/plan/model/plan.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace ullage::plan {

inline constexpr const char* kPlanFormat = "ullage-plan";
inline constexpr std::uint64_t kPlanVersion = 1;

// Index: Plan::Outcome.
inline constexpr std::array<const char*, 3> kOutcomeWords = {"fits", "plan", "infeasible"};
// Index: Action::What.
inline constexpr std::array<const char*, 8> kActionWords = {"drop",  "recompute", "batch-norm",  "hold",
                                                            "spill", "restore",   "write_ahead", "read_ahead"};

inline const char* word_of(Plan::Outcome outcome) { return kOutcomeWords.at(static_cast<std::size_t>(outcome)); }
inline const char* word_of(Action::What what) { return kActionWords.at(static_cast<std::size_t>(what)); }

template <class Words>
std::optional<std::size_t> index_of_word(const Words& words, std::string_view word) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return i;
  }
  return std::nullopt;
}

// Does the action have `op` and `keeps`? The others have `value`.
inline bool runs_an_op(Action::What what) { return what == Action::What::Recompute || what == Action::What::BatchNorm; }

}  // namespace ullage::plan
