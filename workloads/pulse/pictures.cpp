// SPDX-License-Identifier: Apache-2.0
#include "pulse/pictures.h"

#include "image/decode.h"
#include "image/picture_list.h"

#include <filesystem>
#include <map>
#include <utility>

namespace ullage::pulse {
namespace {

namespace fs = std::filesystem;

bool will_do(image::PictureSize size, std::int64_t resolution) {
  return size.width == size.height && size.width >= 2 && resolution % size.width == 0;
}

// Keeps the pixels of a picture whose size is accepted; of any other keeps only the size.
class WholePicture final : public image::RowSink {
 public:
  explicit WholePicture(std::int64_t resolution) : resolution_(resolution) {}

  void start(image::PictureSize size) override {
    size_ = size;
    if (will_do(size, resolution_)) rgb_.reserve(size.bytes().count);
  }
  void row(std::span<const std::uint8_t> rgb) override {
    if (will_do(size_, resolution_)) rgb_.insert(rgb_.end(), rgb.begin(), rgb.end());
  }

  image::PictureSize size() const { return size_; }
  image::Picture take() { return {size_.width, size_.height, std::move(rgb_)}; }

 private:
  std::int64_t resolution_;
  image::PictureSize size_;
  std::vector<std::uint8_t> rgb_;
};

std::string sides_that_work(std::int64_t resolution) {
  std::string text;
  for (std::int64_t side = 2; side < resolution; side *= 2) text += std::to_string(side) + ", ";
  return text + "or " + std::to_string(resolution);
}

}  // namespace

Result<image::Picture> load_picture(const std::string& path, std::int64_t resolution,
                                    const image::ChargeMemory& charge) {
  WholePicture picture(resolution);
  ULLAGE_TRY(image::decode(path, picture, charge));
  const image::PictureSize size = picture.size();
  if (will_do(size, resolution)) return picture.take();
  return Error{Error::Kind::BadFile,
               "is " + std::to_string(size.width) + " x " + std::to_string(size.height) +
                   " pixels; it must be square, of a side that divides the network's " + std::to_string(resolution) +
                   ": " + sides_that_work(resolution),
               path};
}

Result<std::vector<Job>> list_jobs(const std::string& input, std::int64_t duplicates, std::int64_t resolution,
                                   const image::ChargeMemory& charge) {
  ULLAGE_TRY_VALUE(const auto paths, image::list_pictures(input));
  std::vector<Job> jobs;
  std::map<std::string, std::string> picture_of;  // keyed by the name of its results
  for (const std::string& path : paths) {
    ULLAGE_TRY_VALUE(const auto picture, load_picture(path, resolution, charge));
    const std::string stem = fs::path(path).stem().string();
    for (std::int64_t k = 1; k <= duplicates; ++k) {
      const std::string name = duplicates == 1 ? stem : stem + "_" + std::to_string(k);
      const auto [other, is_new] = picture_of.emplace(name, path);
      if (!is_new) {
        return Error{
            Error::Kind::BadFile,
            "the faces of this picture and " + other->second + " would both be written as " + name + ".png; rename one",
            path};
      }
      jobs.push_back({path, name, picture.width});
    }
  }
  return jobs;
}

}  // namespace ullage::pulse
