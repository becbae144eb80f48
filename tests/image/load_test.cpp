// SPDX-License-Identifier: Apache-2.0
#include "image/load.h"

#include "pictures.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace ullage::image::test {
namespace {

TEST(LoadSquareRgb, GivesASquareOfAnyPicture) {
  const TempFolder folder;
  make_png(folder.path("wide.png"), {.size = {90, 20}});
  make_png(folder.path("tall.png"), {.size = {3, 200}, .interlaced = true});
  make_jpeg(folder.path("small.jpg"), {.size = {1, 1}});
  for (const char* name : {"wide.png", "tall.png", "small.jpg"}) {
    const Result<Picture> picture = load_square_rgb(folder.path(name), 32, {});
    ASSERT_TRUE(picture.ok()) << picture.error().text();
    EXPECT_EQ(picture->width, 32u);
    EXPECT_EQ(picture->height, 32u);
    EXPECT_EQ(picture->rgb.size(), 32u * 32 * 3);
  }
}

TEST(LoadSquareRgb, RefusesASideThatCannotBe) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {9, 9}});
  for (const std::uint32_t side : {0u, 13'378u, 4'000'000'000u}) {
    const Result<Picture> picture = load_square_rgb(folder.path("a.png"), side, {});
    ASSERT_FALSE(picture.ok());
    EXPECT_EQ(picture.error().kind, Error::Kind::BadArgument);
  }
}

TEST(LoadSquareRgb, NamesABadFile) {
  const TempFolder folder;
  const std::string path = folder.write("a.png", std::string("text"));
  const Result<Picture> picture = load_square_rgb(path, 8, {});
  ASSERT_FALSE(picture.ok());
  EXPECT_EQ(picture.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(picture.error().where, path);
}

TEST(LoadSquareRgb, AsksBeforeItTakesAnInterlacedPicture) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {90, 20}, .interlaced = true});
  Charges charges;
  ASSERT_TRUE(load_square_rgb(folder.path("a.png"), 8, charges.callback()).ok());
  EXPECT_EQ(charges.bytes, std::vector<Bytes>{Bytes{90 * 20 * 3}});
  EXPECT_EQ(charges.held, 0);
  const ChargeMemory refuse = [](Bytes, std::string_view) -> std::shared_ptr<void> {
    throw std::runtime_error("no room");
  };
  EXPECT_THROW((void)load_square_rgb(folder.path("a.png"), 8, refuse), std::runtime_error);
}

}  // namespace
}  // namespace ullage::image::test
