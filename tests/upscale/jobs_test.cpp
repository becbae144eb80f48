// SPDX-License-Identifier: Apache-2.0
#include "upscale/jobs.h"

#include "image/write_png.h"
#include "program/temp_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ullage::upscale {
namespace {

namespace fs = std::filesystem;

class UpscaleJobs : public testing::Test {
 protected:
  std::string picture(const std::string& name, std::uint32_t width = 3, std::uint32_t height = 2) {
    fs::create_directories(fs::path(folder / name).parent_path());
    EXPECT_TRUE(image::write_png(folder / name, width, height, std::vector<std::uint8_t>(3 * width * height, 9)));
    return folder / name;
  }
  Result<std::vector<Job>> jobs(const std::string& input, const std::string& out, bool force = false) {
    Options options;
    options.input = folder / input;
    options.out = folder / out;
    options.force = force;
    return list_jobs(options, 4, {});
  }
  std::string error(const std::string& input, const std::string& out) {
    const auto listed = jobs(input, out);
    EXPECT_FALSE(listed.ok());
    return listed.ok() ? "" : listed.error().message;
  }

  test::TempFolder folder;
};

TEST_F(UpscaleJobs, AFileBecomesAFile) {
  picture("a.png");
  const auto listed = jobs("a.png", "new/b.png");
  ASSERT_TRUE(listed.ok()) << listed.error().text();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].out, folder / "new/b.png");
  EXPECT_EQ((*listed)[0].facts.size, (image::PictureSize{3, 2}));
  EXPECT_EQ((*listed)[0].facts.colour(), image::PngColour::Rgb);
  EXPECT_TRUE(fs::is_directory(folder / "new"));
}

TEST_F(UpscaleJobs, AFolderBecomesAFolder) {
  picture("in/b.png");
  picture("in/a.png");
  const auto listed = jobs("in", "out");
  ASSERT_TRUE(listed.ok()) << listed.error().text();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].out, folder / "out/a.png");
  EXPECT_EQ((*listed)[1].out, folder / "out/b.png");
}

TEST_F(UpscaleJobs, RefusesWhatIsThereUnlessForced) {
  picture("a.png");
  std::ofstream(folder / "b.png") << "old";
  EXPECT_EQ(error("a.png", "b.png"), "is there already; --force replaces it, another --out keeps it");
  EXPECT_TRUE(jobs("a.png", "b.png", true).ok());
}

TEST_F(UpscaleJobs, NeverReplacesThePictureItself) {
  picture("a.png");
  EXPECT_EQ(error("a.png", "a.png"), "is the picture itself; choose another --out");
  EXPECT_FALSE(jobs("a.png", "a.png", true).ok());
}

TEST_F(UpscaleJobs, RefusesTwoPicturesWithOneResult) {
  picture("in/a.png");
  fs::copy_file(picture("in/b.png"), folder / "in/a.jpg");
  EXPECT_NE(error("in", "out").find("would both be written as " + folder / "out/a.png"), std::string::npos);
}

TEST_F(UpscaleJobs, RefusesAPlaceThatCannotBeWritten) {
  picture("a.png");
  std::ofstream(folder / "file") << "no folder";
  const auto listed = jobs("a.png", "file/b.png");
  ASSERT_FALSE(listed.ok());
  EXPECT_EQ(listed.error().kind, Error::Kind::BadArgument);
  EXPECT_NE(listed.error().message.find("cannot write there"), std::string::npos);
}

TEST_F(UpscaleJobs, RefusesATruncatedPictureBeforeAnythingIsMade) {
  picture("in/a.png", 64, 64);
  fs::resize_file(picture("in/b.png", 64, 64), 60);
  EXPECT_NE(error("in", "out").find("is cut short"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "out"));
}

}  // namespace
}  // namespace ullage::upscale
