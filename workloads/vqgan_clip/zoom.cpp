// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/zoom.h"

#include "image/resize.h"
#include "ullage/base/check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

// The columns or rows [begin, end) to cut out; some may be outside the picture.
struct Cut {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t length() const { return end - begin; }
};

// Returns nothing if there would be no pixel, or too many.
std::optional<Cut> cut(double length, double scale) {
  const double half = length / (scale * 2);
  if (!(half <= static_cast<double>(image::kMaxPixels))) return std::nullopt;
  const Cut cut{std::llrint(length / 2 - half), std::llrint(length / 2 + half)};
  return cut.length() > 0 ? std::optional(cut) : std::nullopt;
}

struct Cuts {
  Cut columns, rows;
};

std::optional<Cuts> cuts(const PictureSize& size, double scale) {
  const auto columns = cut(static_cast<double>(size.width), scale), rows = cut(static_cast<double>(size.height), scale);
  if (!columns || !rows) return std::nullopt;
  const auto most = static_cast<std::int64_t>(image::kMaxPixels);
  if (columns->length() > most / rows->length()) return std::nullopt;
  return Cuts{*columns, *rows};
}

// Cuts out the part, black beyond the rim, and resizes it to the old size, row by row.
image::Picture cut_and_resized(const image::Picture& picture, const Cuts& cuts) {
  const auto width = static_cast<std::int64_t>(picture.width), height = static_cast<std::int64_t>(picture.height);
  const auto [columns, rows] = cuts;
  image::Resize resize([&picture](image::PictureSize from) { return lanczos(from, {picture.width, picture.height}); });
  resize.start({static_cast<std::uint32_t>(columns.length()), static_cast<std::uint32_t>(rows.length())});
  const std::int64_t begin = std::max<std::int64_t>(columns.begin, 0), end = std::min(columns.end, width);
  const std::vector<std::uint8_t> black(static_cast<std::size_t>(columns.length()) * 3);
  std::vector<std::uint8_t> row = black;
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    const bool inside = y >= 0 && y < height;
    const auto from = picture.rgb.begin() + (y * width + begin) * 3;
    if (inside) std::copy(from, from + (end - begin) * 3, row.begin() + (begin - columns.begin) * 3);
    resize.row(inside ? row : black);
  }
  return resize.take();
}

// Returns `shift` modulo `length`, from 0 to `length` - 1.
std::int64_t within(std::int64_t shift, std::int64_t length) { return (shift % length + length) % length; }

image::Picture shifted(image::Picture picture, std::int64_t right, std::int64_t down) {
  const std::int64_t row_bytes = std::int64_t{picture.width} * 3;
  auto& rgb = picture.rgb;
  std::rotate(rgb.begin(), rgb.end() - within(down, picture.height) * row_bytes, rgb.end());
  const std::int64_t bytes = within(right, picture.width) * 3;
  for (auto row = rgb.begin(); row != rgb.end(); row += row_bytes) {
    std::rotate(row, row + row_bytes - bytes, row + row_bytes);
  }
  return picture;
}

}  // namespace

Status check_zoom(const Zoom& zoom, const PictureSize& size) {
  if (cuts(size, zoom.scale)) return success();
  std::ostringstream text;
  text << "--zoom-scale " << zoom.scale << " does not work with a picture of " << to_string(size)
       << " pixels: " << (zoom.scale > 1 ? "nothing of it would be left" : "it would be too small to be seen")
       << "; give one near 1";
  return Error{Error::Kind::BadArgument, text.str(), ""};
}

image::Picture zoomed(const image::Picture& picture, const Zoom& zoom) {
  const auto where = cuts({picture.width, picture.height}, zoom.scale);
  ULLAGE_CHECK(where.has_value(), "check_zoom() said no");
  return shifted(zoom.scale == 1 ? picture : cut_and_resized(picture, *where), zoom.shift_x, zoom.shift_y);
}

std::string frame_path(const std::string& folder, std::int64_t number) {
  return (std::filesystem::path(folder) / (std::to_string(number) + ".png")).string();
}

}  // namespace ullage::vqgan_clip
