// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the pictures of a PictureFeed, which decodes ahead, into the float batches that the networks train on.

#include "dcgan/options.h"
#include "dcgan/picture_feed.h"

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace ullage::dcgan {

class Batches final {
 public:
  // `paths` are in the order of their listing; `start` is where in the data to begin. Charges the runtime for the
  // feed's ring of decoded pictures.
  Batches(const Options& options, std::vector<std::string> paths, LoadPicture load, DataPlace start);

  // Returns (rows, 3, side, side) with values from -1 to 1. There are `most` rows, fewer at the end of an epoch, and
  // none if the epoch ended without another good picture. Errors: those of PictureFeed::take().
  Result<torch::Tensor> next(std::int64_t most);

  const PictureFeed& feed() const { return *feed_; }

 private:
  std::int64_t side_;
  std::shared_ptr<void> ring_charge_;  // for as long as the feed holds its ring
  std::unique_ptr<PictureFeed> feed_;
};

// Returns a loader that decodes a file to a square RGB picture of --image-size. Every error becomes BadFile, because a
// bad picture is wrong input and not wrong use.
LoadPicture load_from_file(const Options& options);

}  // namespace ullage::dcgan
