// SPDX-License-Identifier: Apache-2.0
// pictures_program WHAT ...: writes a picture to standard output, as "width height\n" and its RGB bytes, for
// test_pictures_in_cpp.py.
//   init PATH WIDTH HEIGHT    prompt PATH WIDTH HEIGHT
//   zoom PATH WIDTH HEIGHT SCALE SHIFT_X SHIFT_Y      WIDTH and HEIGHT are the picture's own
//   pixels|gradient WIDTH HEIGHT USED_WIDTH USED_HEIGHT SEED
//   colours WIDTH HEIGHT RED GREEN BLUE_ABOVE BLUE_BELOW

#include "vqgan_clip/start_pictures.h"
#include "vqgan_clip/zoom.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace ullage;
using namespace ullage::vqgan_clip;

Result<image::Picture> zoomed_file(const std::string& path, const PictureSize& size, const Zoom& zoom) {
  if (Status can = check_zoom(zoom, size); !can) return can.error();
  auto picture = load_init_image(path, size, {});
  if (!picture) return picture.error();
  return zoomed(*picture, zoom);
}

Result<image::Picture> make(const std::string& what, const std::string& path, const std::vector<double>& numbers) {
  const auto whole = [&numbers](std::size_t i) { return static_cast<std::int64_t>(numbers.at(i)); };
  const auto level = [&numbers](std::size_t i) { return static_cast<int>(numbers.at(i)); };
  const PictureSize size{whole(0), whole(1)};
  if (what == "zoom") return zoomed_file(path, size, {numbers.at(2), whole(3), whole(4)});
  if (what == "init") return load_init_image(path, size, {});
  if (what == "prompt") return load_image_prompt(path, size, {});
  if (what == "colours") return gradient_picture({level(2), level(3), level(4), level(5)}, size);
  const InitNoise kind = what == "pixels" ? InitNoise::Pixels : InitNoise::Gradient;
  return init_noise(kind, size, {whole(2), whole(3)}, static_cast<std::uint64_t>(whole(4)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const bool from_file = what == "init" || what == "prompt" || what == "zoom";
  std::vector<double> numbers;
  for (int i = from_file ? 3 : 2; i < argc; ++i) numbers.push_back(std::atof(argv[i]));
  const auto picture = make(what, from_file ? argv[2] : "", numbers);
  if (!picture) return std::fprintf(stderr, "%s\n", picture.error().text().c_str()), 3;
  std::printf("%u %u\n", picture->width, picture->height);
  return std::fwrite(picture->rgb.data(), 1, picture->rgb.size(), stdout) == picture->rgb.size() ? 0 : 1;
}
