// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pictures of a folder in a seeded order, decoded by one background thread that stays ahead of the training by a
// bounded number of bytes.
//
//   decode thread --> [slot|slot|slot| ... ] --> take(): training thread          one ring of decoded pictures,
//                     ^ waits when all are full     ^ waits when all are empty     made and touched once
//
// A place in the data is (epoch, index): index counts places of the epoch's order, bad pictures included. The pictures
// that follow a place are a function of the seed, the list of files and the place alone, so a run goes on from it
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

// The order of an epoch: a permutation of 0..count-1, the same on every machine (Fisher-Yates over SplitMix64).
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t count);

// A decoded picture of Settings::picture bytes. May throw; an exception reaches the caller of take().
using LoadPicture = std::function<Result<std::vector<std::uint8_t>>(const std::string& path)>;

struct SkippedPicture {
  std::string path;
  std::string why;
};

class PictureFeed final {
 public:
  struct Settings {
    std::uint64_t seed = 1;
    Bytes picture;          // of one decoded picture
    Bytes ahead;            // most bytes of decoded pictures that wait; at least one picture is held
    bool skip_bad = false;  // pass over what cannot be decoded; otherwise it is an error of take()
  };

  PictureFeed(std::vector<std::string> paths, LoadPicture load, Settings settings, DataPlace start);
  ~PictureFeed();  // ends the thread after the picture it is decoding
  PictureFeed(const PictureFeed&) = delete;
  PictureFeed& operator=(const PictureFeed&) = delete;

  // Calls sink(k, pixels) for k = 0, 1, ... and returns how many pictures there were: `most`, or fewer at the end of an
  // epoch (possibly none, when its last ones are bad). The place of a bad picture is filled by those that follow.
  // Errors: the loader's, for a bad picture; BadFile when a whole epoch has no good one.
  using Sink = std::function<void(std::size_t, std::span<const std::uint8_t>)>;
  Result<std::size_t> take(std::size_t most, const Sink& sink);

  DataPlace place() const { return place_; }
  std::uint64_t left_in_epoch() const { return paths_.size() - place_.index; }  // at most: bad ones count

  // Bad pictures met so far by take(), each once.
  const std::vector<SkippedPicture>& skipped() const { return skipped_; }

 private:
  class Ring;
  void decode(DataPlace start) const;
  bool decode_epoch(std::uint64_t epoch, std::uint64_t first, std::vector<bool>& known_bad) const;

  std::vector<std::string> paths_;
  LoadPicture load_;
  Settings settings_;
  DataPlace place_;
  std::uint64_t good_in_epoch_ = 0;  // taken since the epoch's start (or this feed's)
  bool whole_epoch_ = false;         // this feed has seen the epoch from index 0
  std::vector<SkippedPicture> skipped_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace ullage::dcgan
