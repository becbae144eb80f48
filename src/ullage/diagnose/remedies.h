// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can be done, as data: each remedy names the causes it is for and is a small function from the evidence to the
// exact setting or code, with the bytes it saves where they can be simulated or computed.

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

// What a remedy may look at: the cause for which it is asked, too.
struct Asked {
  const Evidence& evidence;
  const Cause& cause;
};

// One whose saving has no figure.
inline Remedy known(std::string action, std::string why = "") {
  return {"", std::move(action), std::nullopt, Basis::Known, std::move(why)};
}

struct RemedyRule {
  std::string_view id;
  std::array<std::string_view, 8> causes;  // ids; empty ones end the list
  std::optional<Remedy> (*rule)(const Asked&);
};

std::span<const RemedyRule> pool_remedies();     // settings of PyTorch's pool, handles
std::span<const RemedyRule> program_remedies();  // changes of the person's program
std::span<const RemedyRule> machine_remedies();  // devices, processes, containers, limits
std::span<const RemedyRule> take_remedies();     // Ullage's own commands, for what it recorded itself

// In the order of their causes.
std::vector<RemedyRule> all_remedies();

// For the causes given, most bytes saved first, those without a figure last in the order of their causes.
std::vector<Remedy> remedies_of(const Evidence& evidence, const std::vector<Cause>& causes);

}  // namespace ullage::diagnose
