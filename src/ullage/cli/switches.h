// SPDX-License-Identifier: Apache-2.0
#pragma once

// Brings advise/switches.py into the Pythons of a program, and reads the facts that it notes there.

#include "ullage/advise/facts.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/take_runner.h"

#include <string>

namespace ullage::cli {

class Switches final {
 public:
  // The text and the facts lie in `scratch`.
  explicit Switches(ScratchFolder scratch);

  // Has `launch` run with these words for switches.py. Facts begin anew.
  void add_to(Launch& launch, const std::string& words);
  // What the program did that ran since.
  advise::Facts facts() const { return advise::read_facts(facts_); }

 private:
  std::filesystem::path script() const { return scratch_.path() / "switches.py"; }

  ScratchFolder scratch_;
  std::filesystem::path facts_;
  int runs_ = 0;
};

}  // namespace ullage::cli
