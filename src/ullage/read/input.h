// SPDX-License-Identifier: Apache-2.0
#pragma once

// Any file that `ullage explain` is shown: what it is, is found from its content, never from its name.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <span>
#include <string>

namespace ullage::read {

// BadFile with `name:offset` when the content is damaged, is none of the kinds, or is text without an error in it.
Result<trace::Input> read_input(std::span<const std::byte> content, const std::string& name);

// As above for a file, or standard input for "-". NotFound, BadFile, System.
Result<trace::Input> read_input_file(const std::string& path);

}  // namespace ullage::read
