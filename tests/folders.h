// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace ullage {

// Where a test finds its files. Told by functions, so that one source alone is compiled with the paths of this checkout
// and ccache knows all others again in the next one.
[[nodiscard]] std::filesystem::path tests_folder();     // of the sources
[[nodiscard]] std::filesystem::path programs_folder();  // of what was built
[[nodiscard]] std::filesystem::path libraries_folder();

}  // namespace ullage
