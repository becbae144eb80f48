// SPDX-License-Identifier: Apache-2.0
#include "program/answer.h"

#include <iostream>

namespace ullage::program {

int print(const Answer& answer) {
  (answer.code == ExitCode::Done ? std::cout : std::cerr) << answer.text;
  return to_int(answer.code);
}

}  // namespace ullage::program
