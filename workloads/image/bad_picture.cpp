// SPDX-License-Identifier: Apache-2.0
#include "image/bad_picture.h"

#include "ullage/base/sizes.h"

#include <cstring>
#include <new>

namespace ullage::image {

std::string after_rows(std::uint32_t done, std::uint32_t all) {
  return "after " + std::to_string(done) + " of " + std::to_string(all) + " rows";
}

Error bad_picture(const InputFile& file, const std::string& why) {
  return {Error::Kind::BadFile, why + "; replace it or take it out of the folder", file.path()};
}

Error failure(const InputFile& file, const CGuard& guard, const std::string& place) {
  if (guard.no_memory) throw std::bad_alloc();
  if (file.read_errno() != 0) {
    return {Error::Kind::System,
            "cannot be read " + place + " (" + std::strerror(file.read_errno()) + "); check the disk and try again",
            file.path()};
  }
  if (file.ran_out()) return bad_picture(file, "is cut short: the file ends " + place);
  return bad_picture(file, "is damaged " + place + " (" + guard.message + ")");
}

Status check_size(const InputFile& file, PictureSize size) {
  if (size.pixels() > 0 && size.pixels() <= kMaxPixels) return success();
  return bad_picture(file, "claims " + std::to_string(size.width) + " x " + std::to_string(size.height) + " = " +
                               std::to_string(size.pixels()) + " pixels, " + std::to_string(size.bytes().count) +
                               " bytes (" + to_string(size.bytes()) + ") as RGB, and the limit is " +
                               std::to_string(kMaxPixels) + " pixels");
}

}  // namespace ullage::image
