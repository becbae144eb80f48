// SPDX-License-Identifier: Apache-2.0
#pragma once

// Delivers the pictures of a folder in a seeded order. One background thread decodes them ahead of the training, up to
// a limit in bytes.
//
//   decode thread --> [slot|slot|slot| ... ] --> take(): training thread          one ring of decoded pictures,
//                     ^ waits when all are full     ^ waits when all are empty     made and touched once
//
// A place in the data is (epoch, index); index counts positions in the epoch's order, bad pictures included. The
// pictures that follow a place depend only on the seed, the list of files and the place, so a resumed run continues
// exactly.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ullage::dcgan {

struct DataPlace {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  friend auto operator<=>(const DataPlace&, const DataPlace&) = default;
};

// Returns the order of an epoch: a permutation of 0..count-1, the same on every machine (Fisher-Yates over SplitMix64).
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t count);

// Returns the decoded picture, which has Settings::picture bytes. May throw: take() throws the exception on.
using LoadPicture = std::function<Result<std::vector<std::uint8_t>>(const std::string& path)>;

struct SkippedPicture {
  std::string path;
  std::string why;
};

class PictureFeed final {
 public:
  struct Settings {
    std::uint64_t seed = 1;
    Bytes picture;          // bytes of one decoded picture
    Bytes ahead;            // limit on decoded pictures that wait; one is held even if it is larger
    bool skip_bad = false;  // skip pictures that cannot be decoded; otherwise take() fails on them
  };

  PictureFeed(std::vector<std::string> paths, LoadPicture load, Settings settings, DataPlace start);
  ~PictureFeed();  // waits until the thread has decoded its current picture
  PictureFeed(const PictureFeed&) = delete;
  PictureFeed& operator=(const PictureFeed&) = delete;

  // Calls sink(k, pixels) for k = 0, 1, ... and returns the number of pictures. It is `most`, or less at the end of an
  // epoch; zero if the remaining pictures are bad. A good picture that follows takes the row of a bad one. Errors: the
  // loader's, for a bad picture; BadFile if a whole epoch has no good one.
  using Sink = std::function<void(std::size_t, std::span<const std::uint8_t>)>;
  Result<std::size_t> take(std::size_t most, const Sink& sink);

  DataPlace place() const { return place_; }
  std::uint64_t left_in_epoch() const { return paths_.size() - place_.index; }  // an upper limit: includes bad pictures

  // The bad pictures that take() has met so far, each once.
  const std::vector<SkippedPicture>& skipped() const { return skipped_; }

 private:
  class Ring;
  void decode(DataPlace start) const;
  bool decode_epoch(std::uint64_t epoch, std::uint64_t first, std::vector<bool>& known_bad) const;

  std::vector<std::string> paths_;
  LoadPicture load_;
  Settings settings_;
  DataPlace place_;
  std::uint64_t good_in_epoch_ = 0;  // taken since the epoch's start, or since `start` in the first epoch
  bool whole_epoch_ = false;         // this feed began the epoch at index 0
  std::vector<SkippedPicture> skipped_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace ullage::dcgan
