// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/longest_common.h"

#include <algorithm>

namespace ullage::predict {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Diagonal k has the places (x, y) with x - y = k. After d differences the diagonals -d, -d + 2, ..., d can be reached.
// furthest[d][i] is the largest x on diagonal 2 i - d, or kNone.
class Search final {
 public:
  Search(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b)
      : a_(a), b_(b), width_(std::int64_t(a.size())), height_(std::int64_t(b.size())) {}

  // Returns false if more than `most` differences are needed.
  bool run(std::size_t most) {
    for (std::int64_t d = 0; d <= std::int64_t(most); ++d) {
      std::vector<std::int32_t> row(std::size_t(d) + 1);
      furthest_.emplace_back();
      for (std::int64_t i = 0; i <= d; ++i) {
        const std::int64_t k = 2 * i - d;
        const std::int64_t from = start(d, i);
        row[std::size_t(i)] = std::int32_t(from == kNone ? kNone : along(k, from));
        if (k == width_ - height_ && row[std::size_t(i)] == width_) {
          furthest_.back() = std::move(row);
          return true;
        }
      }
      furthest_.back() = std::move(row);
    }
    return false;
  }

  // Walks back from the end. Pairs come in descending order.
  Pairs pairs() const {
    Pairs found;
    std::int64_t d = std::int64_t(furthest_.size()) - 1, x = width_;
    for (std::int64_t k = width_ - height_; d >= 0; --d) {
      const std::int64_t i = (k + d) / 2;
      const std::int64_t from = start(d, i);
      for (; x > from; --x) found.emplace_back(std::size_t(x - 1), std::size_t(x - k - 1));
      if (d == 0) break;
      const bool down = from == below(d, i, k);  // an entry of `b` that `a` lacks
      k += down ? 1 : -1;
      x = down ? from : from - 1;
    }
    return found;
  }

 private:
  static constexpr std::int64_t kNone = -1;

  std::int64_t along(std::int64_t k, std::int64_t x) const {
    while (x < width_ && x - k < height_ && a_[std::size_t(x)] == b_[std::size_t(x - k)]) ++x;
    return x;
  }
  std::int64_t before(std::int64_t d, std::int64_t i) const {
    return i < 0 || i > d - 1 ? kNone : furthest_[std::size_t(d - 1)][std::size_t(i)];
  }
  // Where a path that comes from diagonal k + 1 meets diagonal k, and one from k - 1.
  std::int64_t below(std::int64_t d, std::int64_t i, std::int64_t k) const {
    const std::int64_t x = before(d, i);
    return x == kNone || x - k > height_ ? kNone : x;
  }
  std::int64_t beside(std::int64_t d, std::int64_t i) const {
    const std::int64_t x = before(d, i - 1);
    return x == kNone || x + 1 > width_ ? kNone : x + 1;
  }
  std::int64_t start(std::int64_t d, std::int64_t i) const {
    return d == 0 ? 0 : std::max(below(d, i, 2 * i - d), beside(d, i));
  }

  std::span<const std::uint64_t> a_, b_;
  std::int64_t width_, height_;
  std::vector<std::vector<std::int32_t>> furthest_;
};

}  // namespace

std::optional<Pairs> longest_common(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
                                    std::size_t most) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t head = 0, tail = 0;
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  Search search(a.subspan(head, a.size() - head - tail), b.subspan(head, b.size() - head - tail));
  if (!search.run(most)) return std::nullopt;
  Pairs all;
  for (std::size_t i = 0; i < head; ++i) all.emplace_back(i, i);
  Pairs middle = search.pairs();
  std::ranges::reverse(middle);
  for (const auto& [x, y] : middle) all.emplace_back(head + x, head + y);
  for (std::size_t i = tail; i > 0; --i) all.emplace_back(a.size() - i, b.size() - i);
  return all;
}

}  // namespace ullage::predict
