// SPDX-License-Identifier: Apache-2.0
#include "image/load.h"

#include "image/decode.h"
#include "image/resize.h"

namespace ullage::image {

Result<Picture> load_square_rgb(const std::string& path, std::uint32_t side, const ChargeMemory& charge) {
  const PictureSize square{side, side};
  if (side == 0 || square.pixels() > kMaxPixels) {
    return Error{Error::Kind::BadArgument,
                 "a picture of " + std::to_string(side) + " x " + std::to_string(side) +
                     " pixels cannot be made; ask for a side of 1 to 13377",
                 path};
  }
  SquareResize resize(side);
  ULLAGE_TRY(decode(path, resize, charge));
  return resize.take();
}

}  // namespace ullage::image
