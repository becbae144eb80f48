// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/size_search.h"

#include <algorithm>

namespace ullage::cli {
namespace {

constexpr std::int64_t kLargestSize = 1 << 20;

class Search final {
 public:
  explicit Search(Bytes room) : room_(static_cast<double>(room.count)) {}

  void note(std::int64_t size, const SizeTried& tried) {
    (tried.fits ? found_.fits : found_.too_large) = size;
    if (tried.took) took_.emplace_back(size, static_cast<double>(tried.took->count));
  }

  bool is_over() const { return found_.fits && found_.too_large && *found_.too_large - *found_.fits <= 1; }
  const SizesFound& found() const { return found_; }

  // Returns the next size to try; it may be out of range.
  std::int64_t next() {
    const bool has_line = took_.size() > 1;
    if (found_.fits && !found_.too_large) return has_line ? full_at(*found_.fits) : *found_.fits * 2;
    turn_ = has_line ? (turn_ + 1) % 3 : 0;
    const bool is_lines = turn_ != 0;
    if (!found_.fits) {
      const std::int64_t full = is_lines ? std::min(full_at(0), *found_.too_large - 1) : 0;
      return full > 0 ? full : *found_.too_large / 2;
    }
    if (const std::int64_t full = is_lines ? full_at(*found_.fits) : *found_.too_large; full < *found_.too_large)
      return full;
    const std::int64_t between = *found_.too_large - *found_.fits;
    step_ *= 2;
    return !has_line || step_ >= between ? *found_.fits + between / 2 : *found_.too_large - step_ / 2;
  }

 private:
  // Returns the size, above `fits`, at which the memory is full if bytes grow along a line through the last two sizes
  // whose bytes are known. If they do not grow, returns twice `fits`.
  std::int64_t full_at(std::int64_t fits) const {
    const auto& [size, bytes] = took_[took_.size() - 1];
    const auto& [size_before, bytes_before] = took_[took_.size() - 2];
    const double each = (bytes - bytes_before) / static_cast<double>(size - size_before);
    if (each <= 0) return fits * 2;
    const double full = std::min(static_cast<double>(size) + (room_ - bytes) / each, static_cast<double>(kLargestSize));
    return std::max(fits + 1, static_cast<std::int64_t>(full));
  }

  double room_;
  SizesFound found_;
  std::vector<std::pair<std::int64_t, double>> took_;  // in the order tried: sizes, and their bytes if known
  std::int64_t step_ = 1;
  int turn_ = 0;  // the line has two turns of three
};

}  // namespace

SizesFound search_sizes(std::int64_t first, const SizeTried& at_first, Bytes room,
                        const std::function<std::optional<SizeTried>(std::int64_t)>& run) {
  Search search(room);
  search.note(first, at_first);
  while (!search.is_over()) {
    const std::int64_t size = search.next();
    if (size < 1 || size > kLargestSize) break;
    const std::optional<SizeTried> tried = run(size);
    if (!tried) break;
    search.note(size, *tried);
  }
  return search.found();
}

}  // namespace ullage::cli
