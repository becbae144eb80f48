// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is said of a file that cannot be shown: the same words for PNG and JPEG.

#include "ullage/base/result.h"

#include "image/c_guard.h"
#include "image/input_file.h"
#include "image/picture.h"

#include <cstdint>
#include <string>

namespace ullage::image {

// "after 37 of 100 rows"
std::string after_rows(std::uint32_t done, std::uint32_t all);

// Why a guarded call was left, `place` being where in the picture: BadFile for a file that is cut short or damaged,
// System for one that could not be read. Throws std::bad_alloc when the library lacked memory, which is no fault of the
// file.
Error failure(const InputFile& file, const CGuard& guard, const std::string& place);

// BadFile saying `why`, with the advice that ends all these messages.
Error bad_picture(const InputFile& file, const std::string& why);

// Fails for a picture that claims more than kMaxPixels, or none.
Status check_size(const InputFile& file, PictureSize size);

}  // namespace ullage::image
