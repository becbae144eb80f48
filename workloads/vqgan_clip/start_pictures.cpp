// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/start_pictures.h"

#include "image/decode.h"
#include "image/resize.h"
#include "ullage/base/check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

image::PictureSize pixels(const PictureSize& size) {
  return {static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height)};
}

Result<image::Picture> load(const std::string& path, const image::ChargeMemory& charge,
                            const std::function<PictureSize(const PictureSize&)>& wanted) {
  image::Resize resize([&wanted](image::PictureSize from) {
    return lanczos(from, pixels(wanted({from.width, from.height})));
  });
  ULLAGE_TRY(image::decode(path, resize, charge));
  return resize.take();
}

// numpy's linspace(from, to, count) as bytes.
std::vector<std::uint8_t> steps(int from, int to, std::int64_t count) {
  std::vector<std::uint8_t> all(static_cast<std::size_t>(count), static_cast<std::uint8_t>(from));
  if (count == 1) return all;
  const double step = (to - from) / static_cast<double>(count - 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::uint8_t>(static_cast<double>(i) * step + from);
  }
  all.back() = static_cast<std::uint8_t>(to);
  return all;
}

// Draws from begin..end-1. std::uniform_int_distribution is not used, because it differs between libraries. The
// remainder favours no value by more than 2^-55.
int draw(std::mt19937_64& draws, int begin, int end) {
  return begin + static_cast<int>(draws() % static_cast<std::uint64_t>(end - begin));
}

}  // namespace

Result<image::Picture> load_init_image(const std::string& path, const PictureSize& used,
                                       const image::ChargeMemory& charge) {
  return load(path, charge, [&used](const PictureSize&) { return used; });
}

PictureSize prompt_size(const PictureSize& picture, const PictureSize& used) {
  const double ratio = static_cast<double>(picture.width) / static_cast<double>(picture.height);
  const auto area = static_cast<double>(std::min(picture.width * picture.height, used.width * used.height));
  // Rounds halves to even, as Python's round() does.
  const auto side = [](double square) { return std::max<std::int64_t>(1, std::llrint(std::pow(square, 0.5))); };
  return {side(area * ratio), side(area / ratio)};
}

Result<image::Picture> load_image_prompt(const std::string& path, const PictureSize& used,
                                         const image::ChargeMemory& charge) {
  return load(path, charge, [&used](const PictureSize& picture) { return prompt_size(picture, used); });
}

Gradient draw_gradient(std::mt19937_64& draws) {
  Gradient gradient;
  gradient.red = draw(draws, 1, 255);
  gradient.green = draw(draws, 2, 255);
  gradient.blue_above = draw(draws, 0, 255);
  gradient.blue_below = draw(draws, 3, 128);
  return gradient;
}

image::Picture gradient_picture(const Gradient& gradient, const PictureSize& size) {
  const std::vector<std::uint8_t> red = steps(0, gradient.red, size.width);
  const std::vector<std::uint8_t> green = steps(0, gradient.green, size.height);
  const std::vector<std::uint8_t> blue = steps(gradient.blue_above, gradient.blue_below, size.height);
  const image::PictureSize all = pixels(size);
  image::Picture picture{all.width, all.height, {}};
  picture.rgb.reserve(all.bytes().count);
  for (std::size_t y = 0; y < green.size(); ++y) {
    for (const std::uint8_t r : red) picture.rgb.insert(picture.rgb.end(), {r, green[y], blue[y]});
  }
  return picture;
}

image::Picture noise_picture(const PictureSize& size, std::mt19937_64& draws) {
  const image::PictureSize all = pixels(size);
  image::Picture picture{all.width, all.height, std::vector<std::uint8_t>(all.bytes().count)};
  for (std::uint8_t& byte : picture.rgb) byte = static_cast<std::uint8_t>(draw(draws, 0, 255));
  return picture;
}

image::Picture init_noise(InitNoise kind, const PictureSize& asked, const PictureSize& used, std::uint64_t seed) {
  ULLAGE_CHECK(kind != InitNoise::None, "a kind of noise");
  std::mt19937_64 draws(seed);
  const image::Picture picture =
      kind == InitNoise::Pixels ? noise_picture(asked, draws) : gradient_picture(draw_gradient(draws), asked);
  return image::resize_lanczos(picture, pixels(used));
}

}  // namespace ullage::vqgan_clip
