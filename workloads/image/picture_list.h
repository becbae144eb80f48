// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the pictures that a person named: one file, or the PNG and JPEG files of a folder.

#include "ullage/base/result.h"

#include <string>
#include <vector>

namespace ullage::image {

// Returns `input` itself if it is no folder; else the files in it that end in .png, .jpg or .jpeg, by name. Decodes
// nothing. NotFound: `input` does not exist, or the folder has no such file. System: it cannot be listed.
Result<std::vector<std::string>> list_pictures(const std::string& input);

}  // namespace ullage::image
