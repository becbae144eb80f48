// SPDX-License-Identifier: Apache-2.0
#pragma once

// Brings advise/switches.py into the Pythons of a program, and reads the facts that it notes there.

#include "ullage/advise/facts.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/take_runner.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

namespace ullage::cli {

class Switches final {
 public:
  // The text and the facts lie in `scratch`.
  explicit Switches(ScratchFolder scratch);

  // Has `launch` run with these words for switches.py. Returns the folder of this run's facts (advise::read_facts). May
  // be called on several threads at once.
  std::filesystem::path add_to(Launch& launch, const std::string& words);

 private:
  std::filesystem::path script() const { return scratch_.path() / "switches.py"; }

  ScratchFolder scratch_;
  std::unique_ptr<std::atomic<int>> runs_ = std::make_unique<std::atomic<int>>(0);
};

}  // namespace ullage::cli
