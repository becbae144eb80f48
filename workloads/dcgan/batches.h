// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches of pictures as the networks see them, from a feed that decodes ahead.

#include "dcgan/options.h"
#include "dcgan/picture_feed.h"

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace ullage::dcgan {

class Batches final {
 public:
  // `paths` in the order of their listing; `start`: where in the data to go on. Charges the runtime for the feed's
  // ring.
  Batches(const Options& options, std::vector<std::string> paths, LoadPicture load, DataPlace start);

  // (rows, 3, side, side) from -1 to 1; at most `most` rows, fewer at the end of an epoch: none when that ended without
  // a further good picture. Errors: the loader's.
  Result<torch::Tensor> next(std::int64_t most);

  const PictureFeed& feed() const { return *feed_; }

 private:
  std::int64_t side_;
  std::shared_ptr<void> ring_charge_;  // for as long as the feed holds its ring
  std::unique_ptr<PictureFeed> feed_;
};

// Decodes a file as the options want its picture. Whatever is wrong with it is wrong input.
LoadPicture load_from_file(const Options& options);

}  // namespace ullage::dcgan
