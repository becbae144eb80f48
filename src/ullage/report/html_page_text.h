// SPDX-License-Identifier: Apache-2.0
#pragma once

// The style and the scripts of a page, as page/ has them; CMake puts them into the program.

#include <string_view>

namespace ullage::report {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace ullage::report
