// SPDX-License-Identifier: Apache-2.0
#include "dcgan/picture_feed.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <variant>

namespace ullage::dcgan {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class SplitMix final {
 public:
  explicit SplitMix(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  // Draws evenly from 0..bound-1. Draws again if the number is below 2^64 mod bound, which would favour small results.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t uneven = (0 - bound) % bound;  // 2^64 mod bound
    for (;;) {
      const std::uint64_t drawn = next();
      if (drawn >= uneven) return drawn % bound;
    }
  }

 private:
  std::uint64_t state_;
};

struct Decoded {
  std::uint64_t index = 0;  // in the epoch's order; its pixels are in the ring's oldest full slot
};
struct EpochEnd {};
using Item = std::variant<Decoded, SkippedPicture, EpochEnd, Error, std::exception_ptr>;

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  SplitMix random(SplitMix(seed).next() ^ SplitMix(~epoch).next());
  for (std::uint32_t left = count; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

// A queue from one thread that puts to one that takes: items, oldest first, and slots with the pixels of the Decoded
// ones.
class PictureFeed::Ring final {
 public:
  Ring(Bytes picture, Bytes ahead)
      : picture_(picture.count),
        slots_(std::max<std::uint64_t>(1, ahead.count / std::max<std::uint64_t>(1, picture.count))),
        pixels_(slots_ * picture_) {}

  ~Ring() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    if (thread.joinable()) thread.join();
  }

  // Waits for room. Returns false if the feed is being destroyed. `pixels` are given only with Decoded.
  bool put(Item item, std::span<const std::uint8_t> pixels = {}) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || (full_ < slots_ && items_.size() < slots_ + kOtherItems); });
    if (closed_) return false;
    if (std::holds_alternative<Decoded>(item)) {
      ULLAGE_CHECK(pixels.size() == picture_, "a decoded picture has the bytes that were agreed");
      std::copy(pixels.begin(), pixels.end(), pixels_.begin() + static_cast<std::ptrdiff_t>(next_full_ * picture_));
      next_full_ = (next_full_ + 1) % slots_;
      ++full_;
    }
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  Item get() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    Item item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  std::span<const std::uint8_t> oldest() const { return {pixels_.data() + next_free_ * picture_, picture_}; }
  void release_oldest() {
    const std::lock_guard lock(mutex_);
    next_free_ = (next_free_ + 1) % slots_;
    --full_;
    changed_.notify_all();
  }

  std::thread thread;

 private:
  static constexpr std::size_t kOtherItems = 16;  // skips and ends of epochs that may wait beside the pictures

  const std::uint64_t picture_;
  const std::uint64_t slots_;
  std::vector<std::uint8_t> pixels_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::uint64_t next_full_ = 0;
  std::uint64_t next_free_ = 0;
  std::uint64_t full_ = 0;
  bool closed_ = false;
};

PictureFeed::PictureFeed(std::vector<std::string> paths, LoadPicture load, Settings settings, DataPlace start)
    : paths_(std::move(paths)),
      load_(std::move(load)),
      settings_(settings),
      place_(start),
      whole_epoch_(start.index == 0),
      ring_(std::make_unique<Ring>(settings.picture, settings.ahead)) {
  ULLAGE_CHECK(!paths_.empty() && paths_.size() <= UINT32_MAX, "a feed has pictures, fewer than 2^32");
  ULLAGE_CHECK(start.index < paths_.size(), "a place in the data lies within an epoch");
  ring_->thread = std::thread([this, start] { decode(start); });
}

PictureFeed::~PictureFeed() = default;

void PictureFeed::decode(DataPlace start) const {
  try {
    std::vector<bool> known_bad(paths_.size());
    if (!decode_epoch(start.epoch, start.index, known_bad)) return;
    for (std::uint64_t epoch = start.epoch + 1; decode_epoch(epoch, 0, known_bad);) ++epoch;
  } catch (...) {
    ring_->put(std::current_exception());
  }
}

// Returns false if the thread must end: the feed is being destroyed, or a bad picture is an error.
bool PictureFeed::decode_epoch(std::uint64_t epoch, std::uint64_t first, std::vector<bool>& known_bad) const {
  const auto order = epoch_order(settings_.seed, epoch, static_cast<std::uint32_t>(paths_.size()));
  for (std::uint64_t index = first; index < order.size(); ++index) {
    const std::uint32_t which = order[index];
    if (known_bad[which]) continue;
    const auto pixels = load_(paths_[which]);
    if (pixels) {
      if (!ring_->put(Decoded{index}, *pixels)) return false;
    } else if (settings_.skip_bad) {
      known_bad[which] = true;
      if (!ring_->put(SkippedPicture{paths_[which], pixels.error().text()})) return false;
    } else {
      ring_->put(pixels.error());
      return false;
    }
  }
  return ring_->put(EpochEnd{});
}

Result<std::size_t> PictureFeed::take(std::size_t most, const Sink& sink) {
  std::size_t taken = 0;
  while (taken < most || place_.index == paths_.size()) {
    Item item = ring_->get();
    if (const auto* decoded = std::get_if<Decoded>(&item)) {
      sink(taken++, ring_->oldest());
      ring_->release_oldest();
      place_.index = decoded->index + 1;
      ++good_in_epoch_;
    } else if (auto* skipped = std::get_if<SkippedPicture>(&item)) {
      skipped_.push_back(std::move(*skipped));
    } else if (std::holds_alternative<EpochEnd>(item)) {
      if (whole_epoch_ && good_in_epoch_ == 0) {
        return Error{Error::Kind::BadFile, "none of the " + std::to_string(paths_.size()) + " pictures can be read",
                     ""};
      }
      place_ = {place_.epoch + 1, 0};
      good_in_epoch_ = 0;
      whole_epoch_ = true;
      return taken;
    } else if (auto* error = std::get_if<Error>(&item)) {
      return std::move(*error);
    } else {
      std::rethrow_exception(std::get<std::exception_ptr>(item));
    }
  }
  return taken;
}

}  // namespace ullage::dcgan
