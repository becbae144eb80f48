// SPDX-License-Identifier: Apache-2.0
#pragma once

// The remedies as data. Each names the causes that it is for, and has a small function from the evidence to the exact
// setting or code. If the bytes it saves can be simulated or computed, the function gives them.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/evidence.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::diagnose {

// The input of a remedy: the evidence, and the cause that it is for.
struct Asked {
  const Evidence& evidence;
  const Cause& cause;
};

// Returns a remedy without a figure of what it saves.
inline Remedy known(std::string action, std::string why = "") {
  return {"", std::move(action), std::nullopt, Basis::Known, std::move(why)};
}

struct RemedyRule {
  std::string_view id;
  std::array<std::string_view, 10> causes;  // ids; entries that are not needed are empty
  std::optional<Remedy> (*rule)(const Asked&);
};

std::span<const RemedyRule> pool_remedies();     // settings of PyTorch's caching allocator, library handles
std::span<const RemedyRule> program_remedies();  // changes of the person's program
std::span<const RemedyRule> machine_remedies();  // devices, processes, limits, data loading, defects
std::span<const RemedyRule> take_remedies();     // Ullage's own commands, for what it recorded itself

// Returns every remedy, family by family.
std::vector<RemedyRule> all_remedies();

// Returns at most eight remedies for `causes`. They are chosen by rank:
// - Remedies rank in the order of their causes. A cause of confidence below 0.1 gets remedies only if there are none
//   yet.
// - For one cause, the advice of the tool that a message comes from ranks first. General remedies that say the same are
//   left out.
// - If a message's request is larger than all that is live and than what is free, the remedies that make it smaller
//   rank first. So does the tool's advice.
// The eight are then sorted by the bytes that they save, most first. Those without a figure come last, by rank.
std::vector<Remedy> remedies_of(const Evidence& evidence, const std::vector<Cause>& causes);

}  // namespace ullage::diagnose
