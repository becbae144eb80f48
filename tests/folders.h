// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace ullage {

// Where a test finds its files. These are functions, so that only folders.cpp is compiled with the paths of this
// checkout. ccache can then reuse every other object file in another checkout.
[[nodiscard]] std::filesystem::path tests_folder();     // the sources of the tests
[[nodiscard]] std::filesystem::path programs_folder();  // the built programs
[[nodiscard]] std::filesystem::path libraries_folder();

}  // namespace ullage
