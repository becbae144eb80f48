// SPDX-License-Identifier: Apache-2.0
#include "dcgan/batches.h"

#include "dcgan/pixels.h"
#include "image/load.h"
#include "torch_program/run_parts.h"

#include <algorithm>
#include <utility>

namespace ullage::dcgan {
namespace {

constexpr Bytes kMostAhead = 24_MiB;  // decoded pictures that wait; 128 of 256 x 256 pixels

Bytes picture_bytes(const Options& o) {
  return Bytes{3} * static_cast<std::uint64_t>(o.image_size) * static_cast<std::uint64_t>(o.image_size);
}

}  // namespace

LoadPicture load_from_file(const Options& options) {
  const auto side = static_cast<std::uint32_t>(options.image_size);
  return [side](const std::string& path) -> Result<std::vector<std::uint8_t>> {
    auto picture = image::load_square_rgb(path, side, torch_program::charge);
    if (picture) return std::move(picture->rgb);
    Error error = picture.error();
    error.kind = Error::Kind::BadFile;
    return error;
  };
}

Batches::Batches(const Options& options, std::vector<std::string> paths, LoadPicture load, DataPlace start)
    : side_(options.image_size) {
  PictureFeed::Settings settings;
  settings.seed = static_cast<std::uint64_t>(options.seed);
  settings.picture = picture_bytes(options);
  settings.ahead = std::min(kMostAhead, settings.picture * 2 * static_cast<std::uint64_t>(options.batch));
  settings.skip_bad = options.skip_bad;
  ring_charge_ = torch_program::charge(std::max(settings.ahead, settings.picture), "decoded pictures that wait");
  feed_ = std::make_unique<PictureFeed>(std::move(paths), std::move(load), settings, start);
}

Result<torch::Tensor> Batches::next(std::int64_t most) {
  const auto rows =
      static_cast<std::int64_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(most), feed_->left_in_epoch()));
  const auto side = static_cast<std::uint32_t>(side_);
  torch::Tensor batch = torch::empty({rows, 3, side_, side_});
  float* const planes = batch.mutable_data_ptr<float>();
  ULLAGE_TRY_VALUE(const auto taken,
                   feed_->take(static_cast<std::size_t>(rows), [&](std::size_t k, std::span<const std::uint8_t> rgb) {
                     to_planes(rgb, side, planes + k * rgb.size());
                   }));
  return batch.narrow(0, 0, static_cast<std::int64_t>(taken));
}

}  // namespace ullage::dcgan
