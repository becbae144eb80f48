// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/exit_code.h"
#include "ullage/cli/app.h"

#include <exception>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace ullage;
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    return cli::run_ullage(words, {std::cout, std::cerr});
  } catch (const std::exception& error) {
    std::cerr << "ullage: " << error.what() << '\n';
    return to_int(ExitCode::Failed);
  }
}
