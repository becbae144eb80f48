// SPDX-License-Identifier: Apache-2.0
#pragma once

// Errors for files that cannot be decoded, in the same words for PNG and JPEG.

#include "ullage/base/result.h"

#include "image/c_guard.h"
#include "image/input_file.h"
#include "image/picture.h"

#include <cstdint>
#include <string>

namespace ullage::image {

// "after 37 of 100 rows"
std::string after_rows(std::uint32_t done, std::uint32_t all);

// Says why a guarded call was left; `place` is where in the picture that was. BadFile: the file is cut short or
// damaged. System: it could not be read. Throws std::bad_alloc if the library ran out of memory, because then the file
// is not at fault.
Error failure(const InputFile& file, const CGuard& guard, const std::string& place);

// Returns BadFile with `why` and the advice that ends all these messages.
Error bad_picture(const InputFile& file, const std::string& why);

// Returns BadFile if the picture claims more than kMaxPixels pixels, or none.
Status check_size(const InputFile& file, PictureSize size);

}  // namespace ullage::image
