// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pictures that a run begins with or searches towards: the person's files, resized, and generated noise. All
// resizes are Pillow's Lanczos (image/resize.h).

#include "image/picture.h"
#include "ullage/base/result.h"
#include "vqgan_clip/options.h"
#include "vqgan_clip/picture_size.h"

#include <cstdint>
#include <random>
#include <string>

namespace ullage::vqgan_clip {

// Returns the picture at `path`, stretched to the size `used`. It is resized while it is decoded. Errors and memory:
// those of image::decode().
Result<image::Picture> load_init_image(const std::string& path, const PictureSize& used,
                                       const image::ChargeMemory& charge);

// Returns the size for an image prompt of size `picture`: its own ratio, with its own area or that of `used` if that is
// smaller. Each side has at least one pixel, where the published program fails.
PictureSize prompt_size(const PictureSize& picture, const PictureSize& used);
Result<image::Picture> load_image_prompt(const std::string& path, const PictureSize& used,
                                         const image::ChargeMemory& charge);

// Red goes from 0 to `red` along a row, green from 0 to `green` down a column, blue from `blue_above` to `blue_below`
// down a column.
struct Gradient {
  int red = 1;         // drawn from 1..254
  int green = 2;       // 2..254
  int blue_above = 0;  // 0..254
  int blue_below = 3;  // 3..127
};
Gradient draw_gradient(std::mt19937_64& draws);
// Steps are numpy's linspace, truncated to bytes.
image::Picture gradient_picture(const Gradient& gradient, const PictureSize& size);

// Draws every byte from 0..254, row by row; 255 is left out, as in the published program.
image::Picture noise_picture(const PictureSize& size, std::mt19937_64& draws);

// Makes either kind at the size asked for and resizes it to `used`. One seed gives the same picture on every system.
// (The published program draws from numpy's generator, which no option seeds.) ContractError for InitNoise::None.
image::Picture init_noise(InitNoise kind, const PictureSize& asked, const PictureSize& used, std::uint64_t seed);

}  // namespace ullage::vqgan_clip
