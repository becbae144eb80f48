// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/unknown.h"

#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/streams.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ullage::drycard {
namespace {

// Returns whether a function of the mathematical libraries only writes results to the card. Functions that answer the
// caller are recognized by a word in their name.
bool only_computes(std::string_view name) {
  constexpr std::string_view kLibraries[] = {"cublas", "cusolver", "cusparse", "cudnn", "cufft", "curand", "nccl"};
  constexpr std::string_view kAnswers[] = {"Get",       "Create", "Size", "Query", "Alloc", "Init", "Version",
                                           "Workspace", "Find",   "Plan", "Split", "Nnz",   "Ptr",  "Heuristic"};
  const auto in_name = [name](std::string_view word) { return name.find(word) != std::string_view::npos; };
  return std::ranges::any_of(kLibraries, [name](std::string_view library) { return name.starts_with(library); }) &&
         std::ranges::none_of(kAnswers, in_name);
}

// Returns whether a function only changes a setting or ends a handle, so that no kernel runs.
bool only_sets(std::string_view name) {
  constexpr std::string_view kSets[] = {"Set", "Destroy", "Restore", "Register", "Group"};
  return std::ranges::any_of(kSets,
                             [name](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

void note(CardLedger& page, std::string_view name) {
  for (LedgerName& place : page.unknown) {
    std::uint32_t free = 0;
    if (place.set.load() == 0 && place.set.compare_exchange_strong(free, 1)) {
      const std::size_t length = std::min(name.size(), LedgerName::kLength - 1);
      std::memcpy(place.text.data(), name.data(), length);
      place.text[length] = '\0';
      place.set.store(2);
      return;
    }
    if (place.set.load() == 2 && name.substr(0, LedgerName::kLength - 1) == place.text.data()) return;
  }
}

}  // namespace
}  // namespace ullage::drycard

ULLAGE_CARD_API int ullage_drycard_unknown(const char* name) {
  if (name == nullptr) return 0;
  if (ullage::drycard::only_computes(name)) {
    if (!ullage::drycard::only_sets(name)) ullage::drycard::note_library_work();
    return 0;
  }
  ullage::drycard::CardLedger& page = ullage::drycard::ledger();
  page.unknown_calls.fetch_add(1, std::memory_order_relaxed);
  ullage::drycard::note(page, name);
  return 0;
}
