// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes every Python process of a program run advise/switches.py when it imports torch. That script switches remedies
// on, such as bf16 autocast, and writes down facts about the program, such as where it builds its optimizer. `ullage
// advise` uses this class for its trials, `ullage run --allow` for the casts that it allows.

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
  // Writes switches.py into `scratch`, which also gets the facts and goes away with this object. If the script cannot
  // be written, that is no error here: the program then runs without switches and no facts are found.
  explicit Switches(ScratchFolder scratch);

  // Adds the script and its words to the environment of `launch`. `words` are switches with blanks between them:
  // "autocast=bfloat16 foreach=0" (ULLAGE_SWITCHES in switches.py). Returns the folder that gets the facts of this run,
  // one file for each Python process; advise::read_facts() reads it after the run. Each call makes another folder. May
  // be called on several threads at once.
  std::filesystem::path add_to(Launch& launch, const std::string& words);

 private:
  std::filesystem::path script() const { return scratch_.path() / "switches.py"; }

  ScratchFolder scratch_;
  // Counts the calls of add_to(). A pointer, so that this object can be moved.
  std::unique_ptr<std::atomic<int>> runs_ = std::make_unique<std::atomic<int>>(0);
};

}  // namespace ullage::cli
