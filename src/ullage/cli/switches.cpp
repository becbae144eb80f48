// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/switches.h"

#include "ullage/advise/trials.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

namespace ullage::cli {

Switches::Switches(ScratchFolder scratch) : scratch_(std::move(scratch)) {
  std::ofstream(script()) << advise::kSwitchesScript;
}

std::filesystem::path Switches::add_to(Launch& launch, const std::string& words) {
  std::filesystem::path facts = scratch_.path() / fmt::format("facts-{}", ++*runs_);
  std::error_code ignored;
  std::filesystem::create_directory(facts, ignored);
  launch.environment.emplace_back("ULLAGE_SWITCHES_SCRIPT", script().string());
  launch.environment.emplace_back("ULLAGE_SWITCHES", words);
  launch.environment.emplace_back("ULLAGE_SWITCHES_FACTS", facts.string());
  return facts;
}

}  // namespace ullage::cli
