// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pictures that a run begins with or goes towards, as bytes: a person's files, at the size they are wanted in, and
// noise. All resizes are Pillow's Lanczos (image/resize.h).

#include "image/picture.h"
#include "ullage/base/result.h"
#include "vqgan_clip/options.h"
#include "vqgan_clip/picture_size.h"

#include <cstdint>
#include <random>
#include <string>

namespace ullage::vqgan_clip {

// The picture at `path` at the size `used`, whatever its own ratio is. Errors and memory: those of image::decode(); it
// is resized as it is read.
Result<image::Picture> load_init_image(const std::string& path, const PictureSize& used,
                                       const image::ChargeMemory& charge);

// What an image prompt of the size `picture` is resized to: its own ratio, its own area or that of `used` if that is
// less. At least a pixel, where the published program stops.
PictureSize prompt_size(const PictureSize& picture, const PictureSize& used);
Result<image::Picture> load_image_prompt(const std::string& path, const PictureSize& used,
                                         const image::ChargeMemory& charge);

// Red from 0 to `red` along a row, green from 0 to `green` down the columns, blue from `blue_above` to `blue_below`.
struct Gradient {
  int red = 1;         // drawn from 1..254
  int green = 2;       // 2..254
  int blue_above = 0;  // 0..254
  int blue_below = 3;  // 3..127
};
Gradient draw_gradient(std::mt19937_64& draws);
// Steps are numpy's linspace, cut off to bytes.
image::Picture gradient_picture(const Gradient& gradient, const PictureSize& size);

// Every byte drawn from 0..254, row by row: 255 is left out, as it is there.
image::Picture noise_picture(const PictureSize& size, std::mt19937_64& draws);

// Either kind at the size asked for, resized to the one used. Of one seed always the same, on any system. The published
// program draws it by numpy's generator, which no option seeds. ContractError for InitNoise::None.
image::Picture init_noise(InitNoise kind, const PictureSize& asked, const PictureSize& used, std::uint64_t seed);

}  // namespace ullage::vqgan_clip
