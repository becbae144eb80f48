// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/clip_file.h"

#include "program/temp_folder.h"
#include "sparse_weights.h"

#include <filesystem>

namespace ullage::vqgan_clip {
namespace {

using test::WantedWeights;

ClipShape published(std::int64_t patch) {
  return {.vision = {768, 12},
          .patch = patch,
          .resolution = 224,
          .text = {512, 12},
          .context = 77,
          .vocabulary = 49408,
          .width = 512};
}

ClipShape small_clip() {
  return {
      .vision = {64, 2}, .patch = 8, .resolution = 32, .text = {128, 3}, .context = 16, .vocabulary = 530, .width = 48};
}

class ClipFileOpened : public testing::Test {
 protected:
  Result<ClipFile> opened(const WantedWeights& tensors, const std::string& prefix = "",
                          const std::string& dtype = "F16") {
    test::write_sparse(path_, tensors, prefix, dtype);
    return open_clip(path_);
  }
  std::string refused(const WantedWeights& tensors, const std::string& dtype = "F16") {
    const auto file = opened(tensors, "", dtype);
    EXPECT_FALSE(file);
    return file ? "" : file.error().text().substr(path_.size());
  }
  // Returns the tensors of small_clip(), but the one called `name` has `shape`, or is missing if `shape` is {-1}.
  static WantedWeights small_with(const std::string& name, const std::vector<std::int64_t>& shape) {
    WantedWeights tensors;
    for (auto& one : wanted_of_clip(small_clip())) {
      if (one.name == name) one.shape = shape;
      if (one.name != name || shape != std::vector<std::int64_t>{-1}) tensors.push_back(one);
    }
    return tensors;
  }

  const test::TempFolder folder_;
  const std::string path_ = folder_ / "clip.pt";
};

TEST(ClipFile, HasThePublishedKeysAndFigures) {
  const auto wanted = wanted_of_clip(published(32));
  EXPECT_EQ(wanted.size(), 302u);
  EXPECT_EQ(test::count_of(wanted), 151'277'313u);
  WantedWeights visual;
  for (const auto& one : wanted) {
    if (one.name.starts_with("visual.")) visual.push_back(one);
  }
  EXPECT_EQ(test::count_of(visual), 87'849'216u);
}

TEST_F(ClipFileOpened, TellsItsSizes) {
  for (const std::int64_t patch : {32, 16}) {
    const auto file = opened(wanted_of_clip(published(patch)));
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ(file->shape.vision.width, 768);
    EXPECT_EQ(file->shape.vision.layers, 12);
    EXPECT_EQ(file->shape.vision.heads(), 12);
    EXPECT_EQ(file->shape.patch, patch);
    EXPECT_EQ(file->shape.resolution, 224);
    EXPECT_EQ(file->shape.tokens(), patch == 32 ? 50 : 197);
    EXPECT_EQ(file->shape.text.heads(), 8);
    EXPECT_EQ(file->shape.context, 77);
    EXPECT_EQ(file->shape.vocabulary, 49408);
    EXPECT_EQ(file->shape.width, 512);
  }
  const auto file = opened(wanted_of_clip(small_clip()), "state_dict.");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->shape.text.layers, 3);
  EXPECT_NE(file->weights->find("visual.proj"), nullptr);
}

TEST_F(ClipFileOpened, MayHoldTheFiguresOfTheArchive) {
  WantedWeights tensors = wanted_of_clip(small_clip());
  for (const char* name : {"input_resolution", "context_length", "vocab_size", "transformer.resblocks.0.attn_mask"}) {
    tensors.push_back({name, {}});
  }
  EXPECT_TRUE(opened(tensors));
}

TEST_F(ClipFileOpened, SaysEverythingThatDiffersAtOnce) {
  WantedWeights tensors = small_with("transformer.resblocks.1.ln_1.weight", {-1});
  tensors.push_back({"visual.more", {1}});
  for (auto& one : tensors) {
    if (one.name == "ln_final.bias") one.shape = {5};
  }
  EXPECT_NE(
      refused(tensors).find("1 are missing: transformer.resblocks.1.ln_1.weight; 1 have another shape: ln_final.bias "
                            "is [5], wanted [128]; 1 are extra: visual.more"),
      std::string::npos);
}

TEST_F(ClipFileOpened, MissesALayerThatIsLeftOut) {
  WantedWeights tensors;
  for (const auto& one : wanted_of_clip(small_clip())) {
    if (!one.name.starts_with("transformer.resblocks.1.")) tensors.push_back(one);
  }
  EXPECT_NE(refused(tensors).find("12 are missing: transformer.resblocks.1.ln_1.weight"), std::string::npos);
}

TEST_F(ClipFileOpened, OfAnotherKindIsCalledByItsName) {
  EXPECT_NE(refused({{"visual.layer1.0.conv1.weight", {1}}}).find("this is a CLIP with a ResNet"), std::string::npos);
  EXPECT_NE(refused({{"state_dict.decoder.conv_in.weight", {1}}}).find("this is a VQGAN; give it with --checkpoint"),
            std::string::npos);
  EXPECT_NE(refused({{"vision_model.embeddings.class_embedding", {1}}}).find("another library's CLIP"),
            std::string::npos);
  EXPECT_EQ(refused({{"a", {1}}}),
            ": visual.conv1.weight is missing or has another number of extents: this is not a CLIP; give the published "
            "file, as "
            "ViT-B-32.pt");
  EXPECT_NE(refused(wanted_of_clip(small_clip()), "I16").find("is of type I16"), std::string::npos);
}

TEST_F(ClipFileOpened, ThatIsDamagedIsStillCalledAClip) {
  const std::string damaged =
      "is missing or has another number of extents: other tensors are those of a CLIP with a vision transformer, "
      "so the file is damaged or incomplete; give the published file";
  EXPECT_EQ(refused(small_with("visual.conv1.weight", {-1})), ": visual.conv1.weight " + damaged);
  EXPECT_EQ(refused(small_with("visual.proj", {64})), ": visual.proj " + damaged);
  EXPECT_EQ(refused(small_with("token_embedding.weight", {-1})), ": token_embedding.weight " + damaged);
}

TEST_F(ClipFileOpened, OfSizesThatCannotBeIsRefused) {
  EXPECT_NE(refused(small_with("visual.positional_embedding", {16, 64}))
                .find("has 16 places; expected one more than a square"),
            std::string::npos);
  EXPECT_NE(refused(small_with("visual.positional_embedding", {0, 64})).find("has 0 places"), std::string::npos);
  EXPECT_NE(refused(small_with("visual.conv1.weight", {65, 3, 8, 8})).find("width 65 is out of range"),
            std::string::npos);
  EXPECT_NE(refused(small_with("visual.conv1.weight", {64, 3, 8, 2000})).find("patches of side 2000 is out of range"),
            std::string::npos);
  EXPECT_NE(refused(small_with("visual.conv1.weight", {64, 0, 8, std::int64_t{1} << 60})).find("patches of side"),
            std::string::npos);
  EXPECT_NE(
      refused(small_with("token_embedding.weight", {0, std::int64_t{1} << 62})).find("a text transformer of width"),
      std::string::npos);
  WantedWeights tensors = wanted_of_clip(small_clip());
  tensors.push_back({"transformer.resblocks.99999999.a", {1}});
  EXPECT_NE(refused(tensors).find("text layers: 257 is out of range"), std::string::npos);
}

TEST_F(ClipFileOpened, IsFoundByItsPathOrName) {
  ASSERT_TRUE(opened(wanted_of_clip(small_clip())));
  EXPECT_EQ(*find_clip(path_, folder_.path()), path_);
  const auto missing = find_clip("ViT-B/32", folder_.path());
  EXPECT_EQ(
      missing.error().text(),
      folder_ / ".cache/clip/ViT-B-32.pt: no such file: this program downloads nothing; name CLIP's file with --clip");
  std::filesystem::create_directories(folder_ / ".cache/clip");
  std::filesystem::copy_file(path_, folder_ / ".cache/clip/ViT-B-32.pt");
  EXPECT_EQ(*find_clip("ViT-B/32", folder_.path()), folder_ / ".cache/clip/ViT-B-32.pt");
  EXPECT_EQ(find_clip("none.pt", folder_.path()).error().kind, Error::Kind::NotFound);
}

}  // namespace
}  // namespace ullage::vqgan_clip
