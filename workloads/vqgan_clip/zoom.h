// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the next frame of a zoom video: cuts the picture about its middle, resizes it to the old size, then shifts it.
//
//   scale 2, inwards                      scale 0.5, outwards
//   +-----------+      +-----------+      +-----------+      +-----------+
//   |  +-----+  |      |           |      |           |      |  black    |
//   |  |  o  |  |  ->  |     O     |      |     O     |  ->  |     o     |
//   |  +-----+  |      |           |      |           |      |           |
//   +-----------+      +-----------+      +-----------+      +-----------+
//
// A scale above 1 zooms inwards, as in the published program. The default of both programs is 0.99. It zooms outwards:
// each frame is a hundredth smaller, and black appears at the rim. Edit this to change what a zoom does to a picture.

#include "image/picture.h"
#include "ullage/base/result.h"
#include "vqgan_clip/picture_size.h"

#include <cstdint>
#include <string>

namespace ullage::vqgan_clip {

struct Zoom {
  double scale = 1;
  std::int64_t shift_x = 0;  // pixels to the right; wraps around
  std::int64_t shift_y = 0;  // pixels downwards; wraps around
};

// BadArgument if a picture of that size cannot be zoomed so: the part cut out has no pixel, or more than
// image::kMaxPixels.
Status check_zoom(const Zoom& zoom, const PictureSize& size);

// Cuts out the columns from width / 2 - width / (2 * scale) to width / 2 + width / (2 * scale), both rounded, halves to
// even; and the rows likewise, with the height. The result equals that of Pillow's crop, resize with Lanczos and
// ImageChops.offset, if Pillow resizes each row to the new width before it resizes the columns to the new height
// (image/resize.h says when it does). While it runs, `picture` and the result are in memory, and some rows.
// ContractError if check_zoom() fails.
image::Picture zoomed(const image::Picture& picture, const Zoom& zoom);

// Returns "steps/12.png", as the published program names frames and ffmpeg's "steps/%d.png" reads them. Numbers begin
// with 0. A video has one frame per iteration, of the picture before the update. A zoom video has one every
// zoom_save_every iterations, written before the picture is zoomed.
std::string frame_path(const std::string& folder, std::int64_t number);

}  // namespace ullage::vqgan_clip
