// SPDX-License-Identifier: Apache-2.0
#include "image/decode_png.h"

#include "pictures.h"
#include "whole_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace ullage::image::test {
namespace {

const std::string kAdvice = "; replace it or take it out of the folder";

void expect_samples(const Picture& picture) {
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    for (std::uint32_t x = 0; x < picture.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const std::size_t at = (std::size_t{y} * picture.width + x) * 3 + static_cast<unsigned>(c);
        ASSERT_EQ(picture.rgb[at], sample(x, y, c)) << x << ", " << y;
      }
    }
  }
}

std::string message_of(const std::string& path) {
  const Result<Picture> picture = decode_whole(path, {});
  if (picture) return "decoded";
  EXPECT_EQ(picture.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(picture.error().where, path);
  return picture.error().message;
}

// Counts rows and keeps none.
class RowCount final : public RowSink {
 public:
  void start(PictureSize) override {}
  void row(std::span<const std::uint8_t>) override { ++rows; }
  std::uint32_t rows = 0;
};

TEST(DecodePng, GivesThePixels) {
  const TempFolder folder;
  for (const bool interlaced : {false, true}) {
    for (const int depth : {8, 16}) {
      make_png(folder.path("a.png"), {.size = {37, 19}, .interlaced = interlaced, .depth = depth});
      const Result<Picture> picture = decode_whole(folder.path("a.png"), {});
      ASSERT_TRUE(picture.ok()) << picture.error().text();
      ASSERT_EQ(picture->width, 37u);
      ASSERT_EQ(picture->height, 19u);
      expect_samples(*picture);
    }
  }
}

TEST(DecodePng, TakesTheHighByteOfSixteenBitGrey) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {5, 1}, .depth = 16, .grey = true});
  const Result<Picture> picture = decode_whole(folder.path("a.png"), {});
  ASSERT_TRUE(picture.ok());
  for (std::uint32_t x = 0; x < 5; ++x) EXPECT_EQ(picture->rgb[3 * x + 1], sample(x, 0, 0));
}

TEST(DecodePng, EveryPrefixIsAnErrorOrTheWholePicture) {
  const TempFolder folder;
  for (const bool interlaced : {false, true}) {
    make_png(folder.path("a.png"), {.size = {7, 6}, .interlaced = interlaced});
    const FileBytes whole = read_file(folder.path("a.png"));
    std::size_t taken = 0;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      const std::string cut =
          folder.write("cut.png", FileBytes(whole.begin(), whole.begin() + static_cast<long>(length)));
      const Result<Picture> picture = decode_whole(cut, {});
      if (picture) {
        ++taken;
        expect_samples(*picture);
      } else if (length >= 8) {
        EXPECT_EQ(picture.error().message.rfind("is cut short: the file ends ", 0), 0u) << picture.error().text();
      }
    }
    EXPECT_EQ(taken, 13u);  // the whole file, or without 1 to 12 bytes of the end chunk
  }
}

TEST(DecodePng, SaysAtWhichRowTheFileEnds) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {300, 400}, .fill = PngShape::Fill::Noise});
  FileBytes bytes = read_file(folder.path("a.png"));
  bytes.resize(bytes.size() / 2);
  const std::string message = message_of(folder.write("cut.png", bytes));
  unsigned row = 0, all = 0;
  ASSERT_EQ(std::sscanf(message.c_str(), "is cut short: the file ends after %u of %u rows", &row, &all), 2) << message;
  EXPECT_EQ(all, 400u);
  EXPECT_GT(row, 100u);
  EXPECT_LT(row, 300u);
}

TEST(DecodePng, SaysInWhichPassAnInterlacedFileEnds) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {300, 400}, .interlaced = true, .fill = PngShape::Fill::Noise});
  FileBytes bytes = read_file(folder.path("a.png"));
  bytes.resize(bytes.size() / 3);
  EXPECT_EQ(message_of(folder.write("cut.png", bytes)),
            "is cut short: the file ends in pass 6 of 7, before its 400 rows are whole" + kAdvice);
}

TEST(DecodePng, SaysAtWhichRowTheFileIsDamaged) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {300, 400}, .fill = PngShape::Fill::Noise});
  FileBytes bytes = read_file(folder.path("a.png"));
  bytes[bytes.size() / 2] ^= 0x55;
  const std::string message = message_of(folder.write("damaged.png", bytes));
  EXPECT_EQ(message.rfind("is damaged after ", 0), 0u) << message;
  EXPECT_NE(message.find(" of 400 rows (IDAT"), std::string::npos) << message;
}

TEST(DecodePng, ChecksTheSumsBehindTheLastRow) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {7, 6}});
  const FileBytes whole = read_file(folder.path("a.png"));
  FileBytes bytes = whole;
  bytes[bytes.size() - 13] ^= 1;  // the last byte before the 12 of the end chunk
  EXPECT_EQ(message_of(folder.write("damaged.png", bytes)), "is damaged after 5 of 6 rows (IDAT: CRC error)" + kAdvice);
  bytes = whole;
  bytes.back() ^= 1;
  EXPECT_EQ(message_of(folder.write("damaged.png", bytes)),
            "is damaged after its last row (IEND: CRC error)" + kAdvice);
}

TEST(DecodePng, RefusesADamagedHeader) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {7, 6}});
  FileBytes bytes = read_file(folder.path("a.png"));
  bytes[20] ^= 1;
  EXPECT_EQ(message_of(folder.write("damaged.png", bytes)), "is damaged in its header (IHDR: CRC error)" + kAdvice);
}

TEST(DecodePng, RefusesABombBeforeTakingMemory) {
  const TempFolder folder;
  const std::string path = folder.write("bomb.png", png_start({60000, 60000}) + chunk("IDAT", FileBytes(100)));
  std::string message;
  const Bytes growth = peak_growth([&] { message = message_of(path); });
  EXPECT_EQ(message,
            "claims 60000 x 60000 = 3600000000 pixels, 10800000000 bytes (10.05 GiB) as RGB, and the limit is "
            "178956970 pixels" +
                kAdvice);
  EXPECT_LT(growth, 2_MiB);
}

TEST(DecodePng, RefusesOnePixelAboveTheLimit) {
  const TempFolder folder;
  const auto over = folder.write("over.png", png_start({178'956'971, 1}) + chunk("IDAT", {}));
  EXPECT_EQ(message_of(over).rfind("claims 178956971 x 1 = 178956971 pixels", 0), 0u);
  const auto most = folder.write("most.png", png_start({2, 89'478'485}) + chunk("IDAT", {}));
  EXPECT_EQ(message_of(most).rfind("is cut short", 0), 0u);
}

TEST(DecodePng, StreamsABigPicture) {
  const TempFolder folder;
  make_png(folder.path("big.png"), {.size = {10000, 10000}, .fill = PngShape::Fill::OneColour});
  RowCount count;
  Charges charges;
  Status decoded = success();
  const Bytes growth = peak_growth([&] { decoded = decode(folder.path("big.png"), count, charges.callback()); });
  ASSERT_TRUE(decoded.ok()) << decoded.error().text();
  EXPECT_EQ(count.rows, 10000u);
  EXPECT_TRUE(charges.bytes.empty());
  std::printf("VmHWM grew by %llu KiB for 10000 x 10000\n", static_cast<unsigned long long>(growth.count / 1024));
  EXPECT_LT(growth, 8_MiB);
}

TEST(DecodePng, ChargesTheWholeInterlacedPictureAndGivesItBack) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {3000, 2000}, .interlaced = true, .fill = PngShape::Fill::OneColour});
  RowCount count;
  Charges charges;
  const Bytes before = resident();
  const Bytes growth = peak_growth([&] { ASSERT_TRUE(decode(folder.path("a.png"), count, charges.callback()).ok()); });
  EXPECT_EQ(count.rows, 2000u);
  ASSERT_EQ(charges.bytes, std::vector<Bytes>{Bytes{18'000'000}});
  EXPECT_EQ(charges.held, 0);
  // The memory was really used, and no more. The kernel's figures are off by some pages.
  EXPECT_GT(growth, charges.bytes[0] - 1_MiB);
  EXPECT_LT(growth, charges.bytes[0] + 2_MiB);
  EXPECT_LT(charges.resident_at_release, before + 2_MiB);
}

TEST(DecodePng, ChargesVeryWideRows) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {70000, 2}});
  RowCount count;
  Charges charges;
  ASSERT_TRUE(decode(folder.path("a.png"), count, charges.callback()).ok());
  EXPECT_EQ(charges.bytes, std::vector<Bytes>{Bytes{70000 * 19}});
}

TEST(DecodePng, WhatAChargeThrowsPassesThrough) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {30, 20}, .interlaced = true});
  RowCount count;
  const ChargeMemory refuse = [](Bytes, std::string_view what) -> std::shared_ptr<void> {
    throw std::runtime_error("no room for " + std::string(what));
  };
  try {
    (void)decode(folder.path("a.png"), count, refuse);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "no room for an interlaced PNG");
  }
  EXPECT_EQ(count.rows, 0u);
}

TEST(DecodePng, WhatASinkThrowsPassesThroughAndEndsTheCharge) {
  struct Full final : RowSink {
    void start(PictureSize) override {}
    void row(std::span<const std::uint8_t>) override { throw std::length_error("full"); }
  };
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {30, 20}, .interlaced = true});
  Full full;
  Charges charges;
  EXPECT_THROW((void)decode(folder.path("a.png"), full, charges.callback()), std::length_error);
  EXPECT_EQ(charges.bytes.size(), 1u);
  EXPECT_EQ(charges.held, 0);
}

TEST(DecodePng, KeepsNoTextsAndProfiles) {
  const TempFolder folder;
  make_png(folder.path("a.png"), {.size = {7, 6}});
  FileBytes bytes = read_file(folder.path("a.png"));
  FileBytes texts;
  for (int i = 0; i < 4; ++i) texts = texts + chunk("tEXt", FileBytes{'k', 0} + FileBytes(7'000'000, 'x'));
  bytes.insert(bytes.begin() + 33, texts.begin(), texts.end());  // after IHDR
  const std::string path = folder.write("long.png", bytes);
  const Bytes growth = peak_growth([&] { EXPECT_EQ(message_of(path), "decoded"); });
  EXPECT_LT(growth, 2_MiB);
}

}  // namespace
}  // namespace ullage::image::test
