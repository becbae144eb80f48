// SPDX-License-Identifier: Apache-2.0
#include "image/png_rows.h"

#include "pictures.h"
#include "whole_picture.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace ullage::image::test {
namespace {

class KindAndRows final : public RowSink {
 public:
  void kind(PictureKind one) override { seen = one; }
  void start(PictureSize) override {}
  void row(std::span<const std::uint8_t> pixels) override { bytes.insert(bytes.end(), pixels.begin(), pixels.end()); }
  PictureKind seen;
  FileBytes bytes;
};

KindAndRows decoded(const std::string& path, Pixels pixels) {
  KindAndRows sink;
  const Status status = decode(path, sink, {}, pixels);
  EXPECT_TRUE(status.ok()) << status.error().text();
  return sink;
}

// Every byte of a picture of 5 x 3 pixels is another.
FileBytes numbered(PngColour colour) {
  FileBytes bytes(15 * static_cast<std::size_t>(colour));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
  return bytes;
}

void write(const std::string& path, PngColour colour) {
  const FileBytes bytes = numbered(colour);
  auto rows = PngRows::begin(path, 5, 3, colour);
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  const std::size_t row = bytes.size() / 3;
  ASSERT_TRUE(rows->write({bytes.data(), row}).ok());
  EXPECT_EQ(rows->rows_left(), 2u);
  EXPECT_FALSE(std::filesystem::exists(path)) << "it is not whole";
  ASSERT_TRUE(rows->write({bytes.data() + row, 2 * row}).ok());
  ASSERT_TRUE(rows->finish().ok());
}

TEST(PngRows, KeepGreyColoursAndAlpha) {
  const TempFolder folder;
  const std::string path = folder.path("a.png");
  for (const PngColour colour : {PngColour::Grey, PngColour::GreyAlpha, PngColour::Rgb, PngColour::Rgba}) {
    write(path, colour);
    const bool grey = colour == PngColour::Grey || colour == PngColour::GreyAlpha;
    const bool alpha = colour == PngColour::GreyAlpha || colour == PngColour::Rgba;
    const FileBytes bytes = numbered(colour);
    const std::size_t pixel = static_cast<std::size_t>(colour);
    for (const Pixels pixels : {Pixels::Rgb, Pixels::Rgba}) {
      const KindAndRows found = decoded(path, pixels);
      EXPECT_EQ(found.seen.grey, grey);
      EXPECT_EQ(found.seen.alpha, alpha);
      ASSERT_EQ(found.bytes.size(), 15 * bytes_of(pixels));
      for (std::size_t i = 0; i < 15; ++i) {
        const std::uint8_t* at = &found.bytes[i * bytes_of(pixels)];
        for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(at[c], bytes[i * pixel + (grey ? 0 : c)]);
        if (pixels == Pixels::Rgba) {
          ASSERT_EQ(at[3], alpha ? bytes[i * pixel + pixel - 1] : 255);
        }
      }
    }
    std::filesystem::remove(path);
  }
}

TEST(PngRows, LeaveNothingIfTheyAreNotFinished) {
  const TempFolder folder;
  {
    auto rows = PngRows::begin(folder.path("a.png"), 5, 3, PngColour::Rgb);
    ASSERT_TRUE(rows.ok());
    ASSERT_TRUE(rows->write(FileBytes(15)).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(PngRows, WantWholeRowsAndAllOfThem) {
  const TempFolder folder;
  auto rows = PngRows::begin(folder.path("a.png"), 5, 3, PngColour::Rgb);
  ASSERT_TRUE(rows.ok());
  EXPECT_THROW(static_cast<void>(rows->write(FileBytes(14))), ContractError);
  EXPECT_THROW(static_cast<void>(rows->write(FileBytes(60))), ContractError);
  EXPECT_THROW(static_cast<void>(rows->finish()), ContractError);
}

TEST(Decode, GivesOpaqueAlphaToJpegAndToPngWithout) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {17, 9}});
  make_png(folder.path("a.png"), {.size = {17, 9}, .interlaced = true});
  for (const char* name : {"a.jpg", "a.png"}) {
    const FileBytes rgb = decoded(folder.path(name), Pixels::Rgb).bytes,
                    rgba = decoded(folder.path(name), Pixels::Rgba).bytes;
    ASSERT_EQ(rgb.size() / 3, 17u * 9);
    ASSERT_EQ(rgba.size() / 4, 17u * 9);
    for (std::size_t i = 0; i < rgb.size() / 3; ++i) {
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(rgba[4 * i + c], rgb[3 * i + c]);
      ASSERT_EQ(rgba[4 * i + 3], 255);
    }
  }
}

}  // namespace
}  // namespace ullage::image::test
