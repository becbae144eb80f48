// SPDX-License-Identifier: Apache-2.0
#include "image/decode_jpeg.h"

#include "pictures.h"
#include "whole_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace ullage::image::test {
namespace {

const std::string kJpegAdvice = "; replace it or take it out of the folder";

std::string jpeg_message_of(const std::string& path) {
  const Result<Picture> picture = decode_whole(path, {});
  if (picture) return "decoded";
  EXPECT_EQ(picture.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(picture.error().where, path);
  return picture.error().message;
}

class JpegRowCount final : public RowSink {
 public:
  void start(PictureSize) override {}
  void row(std::span<const std::uint8_t>) override { ++rows; }
  std::uint32_t rows = 0;
};

// Finds the header of the last scan: ff da.
FileBytes::iterator last_scan(FileBytes& bytes) {
  const FileBytes marker = {0xff, 0xda};
  return std::find_end(bytes.begin(), bytes.end(), marker.begin(), marker.end());
}

TEST(DecodeJpeg, GivesThePixelsNearly) {
  const TempFolder folder;
  for (const bool progressive : {false, true}) {
    make_jpeg(folder.path("a.jpg"), {.size = {24, 18}, .progressive = progressive, .components = 1});
    const Result<Picture> picture = decode_whole(folder.path("a.jpg"), {});
    ASSERT_TRUE(picture.ok()) << picture.error().text();
    ASSERT_EQ(picture->rgb.size(), 24u * 18 * 3);
    for (std::uint32_t x = 0; x < 24; ++x) EXPECT_NEAR(picture->rgb[3 * x + 2], sample(x, 0, 0) / 2, 8);
  }
}

TEST(DecodeJpeg, EveryPrefixIsAnError) {
  const TempFolder folder;
  for (const bool progressive : {false, true}) {
    make_jpeg(folder.path("a.jpg"), {.size = {17, 19}, .progressive = progressive});
    const FileBytes whole = read_file(folder.path("a.jpg"));
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::string cut =
          folder.write("cut.jpg", FileBytes(whole.begin(), whole.begin() + static_cast<long>(length)));
      const std::string message = jpeg_message_of(cut);
      const char* start = length < 3 ? "is not a PNG or JPEG" : "is cut short: the file ends ";
      EXPECT_EQ(message.rfind(start, 0), 0u) << length << " bytes: " << message;
    }
    EXPECT_EQ(jpeg_message_of(folder.path("a.jpg")), "decoded");
  }
}

TEST(DecodeJpeg, SaysAtWhichRowTheFileEnds) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {300, 400}});
  FileBytes bytes = read_file(folder.path("a.jpg"));
  bytes.resize(bytes.size() / 2);
  const std::string message = jpeg_message_of(folder.write("cut.jpg", bytes));
  unsigned row = 0, all = 0;
  ASSERT_EQ(std::sscanf(message.c_str(), "is cut short: the file ends after %u of %u rows", &row, &all), 2) << message;
  EXPECT_EQ(all, 400u);
  EXPECT_GT(row, 100u);
  EXPECT_LT(row, 300u);
}

TEST(DecodeJpeg, SaysInWhichScanAProgressiveFileEnds) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {300, 400}, .progressive = true});
  FileBytes bytes = read_file(folder.path("a.jpg"));
  bytes.resize(static_cast<std::size_t>(last_scan(bytes) - bytes.begin()) + 20);
  EXPECT_EQ(jpeg_message_of(folder.write("cut.jpg", bytes)),
            "is cut short: the file ends in scan 10, before its 400 rows are whole" + kJpegAdvice);
}

TEST(DecodeJpeg, RefusesPixelsThatAreLost) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {300, 400}});
  FileBytes bytes = read_file(folder.path("a.jpg"));
  const FileBytes end = {0xff, 0xd9};  // end of image
  std::copy(end.begin(), end.end(), bytes.begin() + static_cast<long>(bytes.size() / 2));
  const std::string message = jpeg_message_of(folder.write("damaged.jpg", bytes));
  EXPECT_EQ(message.rfind("is damaged after ", 0), 0u) << message;
  EXPECT_NE(message.find(" of 400 rows (Corrupt JPEG data: premature end of data segment)"), std::string::npos)
      << message;
}

TEST(DecodeJpeg, RefusesADamagedHeader) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {30, 40}});
  FileBytes bytes = read_file(folder.path("a.jpg"));
  const FileBytes frame = {0xff, 0xc0};
  const auto at = std::search(bytes.begin(), bytes.end(), frame.begin(), frame.end());
  at[3] = static_cast<std::uint8_t>(at[3] + 1);  // the segment's length
  const std::string message = jpeg_message_of(folder.write("damaged.jpg", bytes));
  EXPECT_EQ(message.rfind("is damaged in its header (", 0), 0u) << message;
}

TEST(DecodeJpeg, RefusesTwoColourComponents) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {30, 40}, .components = 2});
  EXPECT_EQ(jpeg_message_of(folder.path("a.jpg")), "has 2 colour components; 1, 3 and 4 are read" + kJpegAdvice);
}

TEST(DecodeJpeg, RefusesABombBeforeTakingMemory) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {30, 40}, .progressive = true});
  FileBytes bytes = read_file(folder.path("a.jpg"));
  const FileBytes frame = {0xff, 0xc2};
  const auto at = std::search(bytes.begin(), bytes.end(), frame.begin(), frame.end());
  const FileBytes sides = {0xea, 0x60, 0xea, 0x60};  // 60000, 60000
  std::copy(sides.begin(), sides.end(), at + 5);
  std::string message;
  const std::string path = folder.write("bomb.jpg", bytes);
  const Bytes growth = peak_growth([&] { message = jpeg_message_of(path); });
  EXPECT_EQ(message.rfind("claims 60000 x 60000 = 3600000000 pixels, 10800000000 bytes", 0), 0u) << message;
  EXPECT_LT(growth, 2_MiB);
}

TEST(DecodeJpeg, RefusesABombOfScans) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {64, 64}, .progressive = true, .components = 1});
  FileBytes bytes = read_file(folder.path("a.jpg"));
  // The scan that refines each block's mean may be repeated: component 1, table 0, coefficients 0 to 0, bit 1 to 0.
  const FileBytes header = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0x10};
  const FileBytes marker = {0xff, 0xc4};
  const auto begin = std::search(bytes.begin(), bytes.end(), header.begin(), header.end());
  const auto end = std::search(begin, bytes.end(), marker.begin(), marker.end());
  ASSERT_NE(end, bytes.end());
  FileBytes scans;
  for (int i = 0; i < 200; ++i) scans.insert(scans.end(), begin, end);
  bytes.insert(end, scans.begin(), scans.end());
  EXPECT_EQ(jpeg_message_of(folder.write("scans.jpg", bytes)),
            "is damaged in scan 101, before its 64 rows are whole (more than 100 scans)" + kJpegAdvice);
}

TEST(DecodeJpeg, StreamsABigPicture) {
  const TempFolder folder;
  make_jpeg(folder.path("big.jpg"), {.size = {4000, 4000}});
  JpegRowCount count;
  Charges charges;
  const Bytes growth =
      peak_growth([&] { ASSERT_TRUE(decode(folder.path("big.jpg"), count, charges.callback()).ok()); });
  EXPECT_EQ(count.rows, 4000u);
  EXPECT_TRUE(charges.bytes.empty());
  std::printf("VmHWM grew by %llu KiB for 4000 x 4000\n", static_cast<unsigned long long>(growth.count / 1024));
  EXPECT_LT(growth, 8_MiB);
}

TEST(DecodeJpeg, ChargesTheCoefficientsOfSeveralScansAndGivesThemBack) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {2000, 1500}, .progressive = true});
  JpegRowCount count;
  Charges charges;
  const Bytes before = resident();
  const Bytes growth = peak_growth([&] { ASSERT_TRUE(decode(folder.path("a.jpg"), count, charges.callback()).ok()); });
  EXPECT_EQ(count.rows, 1500u);
  // 4:2:0: 250 x 188 blocks of grey and 125 x 94 of each colour; a block has 64 coefficients of 2 bytes.
  ASSERT_EQ(charges.bytes, std::vector<Bytes>{Bytes{(250 * 188 + 2 * 125 * 94) * 128}});
  EXPECT_EQ(charges.held, 0);
  EXPECT_GT(growth, charges.bytes[0] - 1_MiB);
#ifndef __SANITIZE_ADDRESS__  // keeps freed memory resident
  EXPECT_LT(growth, charges.bytes[0] + 2_MiB);
  EXPECT_LT(charges.resident_at_release, before + 2_MiB);
#else
  (void)before;
#endif
}

TEST(DecodeJpeg, WhatAChargeThrowsPassesThrough) {
  const TempFolder folder;
  make_jpeg(folder.path("a.jpg"), {.size = {30, 20}, .progressive = true});
  JpegRowCount count;
  const ChargeMemory refuse = [](Bytes, std::string_view what) -> std::shared_ptr<void> {
    throw std::runtime_error("no room for " + std::string(what));
  };
  try {
    (void)decode(folder.path("a.jpg"), count, refuse);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "no room for the coefficients of a progressive JPEG");
  }
  EXPECT_EQ(count.rows, 0u);
}

}  // namespace
}  // namespace ullage::image::test
