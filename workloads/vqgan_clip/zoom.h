// SPDX-License-Identifier: Apache-2.0
#pragma once

// One frame of a zoom video to the next: a picture cut out about its middle and resized to the old size, then shifted.
//
//   scale 2, inwards                      scale 0.5, outwards
//   +-----------+      +-----------+      +-----------+      +-----------+
//   |  +-----+  |      |           |      |           |      |  black    |
//   |  |  o  |  |  ->  |     O     |      |     O     |  ->  |     o     |
//   |  +-----+  |      |           |      |           |      |           |
//   +-----------+      +-----------+      +-----------+      +-----------+
//
// Above 1 is inwards. So it is in the published program too, where the default of 0.99 goes outwards: each frame is a
// hundredth smaller, and black comes in at the rim.

#include "image/picture.h"
#include "ullage/base/result.h"
#include "vqgan_clip/picture_size.h"

#include <cstdint>
#include <string>

namespace ullage::vqgan_clip {

struct Zoom {
  double scale = 1;
  std::int64_t shift_x = 0;  // pixels to the right; what leaves on one side comes in on the other
  std::int64_t shift_y = 0;  // downwards
};

// BadArgument where a picture of that size cannot be cut so: nothing is left of it, or more than image::kMaxPixels are.
Status check_zoom(const Zoom& zoom, const PictureSize& size);

// The part cut out has whole pixels: its sides at width / 2 -+ width / (2 scale), rounded, a half to even. Equal to
// Pillow's crop, resize with Lanczos (columns first: image/resize.h) and ImageChops.offset. Takes two pictures' memory.
// ContractError where check_zoom() fails.
image::Picture zoomed(const image::Picture& picture, const Zoom& zoom);

// "steps/12.png", the names of frames in the published program, as ffmpeg's "steps/%d.png" reads them. They begin
// with 0. There a video has one frame an iteration, of the picture before the step; a zoom video one every
// zoom_save_every iterations, written before the picture is zoomed.
std::string frame_path(const std::string& folder, std::int64_t number);

}  // namespace ullage::vqgan_clip
