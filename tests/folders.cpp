// SPDX-License-Identifier: Apache-2.0
#include "folders.h"

namespace ullage {

std::filesystem::path tests_folder() { return ULLAGE_TESTS_FOLDER; }
std::filesystem::path programs_folder() { return ULLAGE_BIN; }
std::filesystem::path libraries_folder() { return ULLAGE_LIB; }

}  // namespace ullage
