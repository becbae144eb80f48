// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/value_search.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <map>

namespace ullage::cli {
namespace {

// Because of scratch, some numbers take fewer bytes than their smaller neighbour. So up to kNeighbours values beyond
// the first that does not fit are tried. The tries end at a value that exceeds the memory by more than 1/kNear of it.
// For the rows of a tile the difference was up to 0.1 %, over three rows, at multiples of four.
constexpr int kNeighbours = 4;
constexpr std::uint64_t kNear = 64;

// How a walk away from the first value ended.
struct Walk {
  enum class End {
    Border,     // `at` and `beyond` differ in whether they fit
    WrongWay,   // bytes grow where they should shrink, or shrink where they should grow
    NoMoreLeft  // `at` is the last value on this side
  };
  End end = End::NoMoreLeft;
  std::size_t at = 0, beyond = 0;
  bool changed = false;  // bytes were seen that differ from the first value's by more than 1/kNear
};

class Search final {
 public:
  Search(const std::vector<std::int64_t>& values, std::size_t first, const ValueTried& at_first, Bytes room,
         const std::function<ValueTried(std::int64_t)>& run)
      : values_(values), first_(first), room_(room), run_(run) {
    tried_.emplace(first, at_first);
  }

  std::optional<ValueFound> find() {
    const bool room = tried(first_).fits;  // true: walks towards more bytes; false: towards fewer
    const Walk usual = walk(room, true);   // assumes at first that a larger value takes more
    if (usual.end == Walk::End::Border) return ValueFound{bisect(usual), false};
    if (usual.end == Walk::End::NoMoreLeft) {
      if (room && usual.at != first_) return ValueFound{usual.at, false};
      if (!room && usual.changed) return std::nullopt;
    }
    const Walk other = walk(!room, true);
    if (other.end == Walk::End::Border) return ValueFound{bisect(other), true};
    if (other.end == Walk::End::NoMoreLeft) {
      if (!room) return std::nullopt;
      const bool falls = usual.end == Walk::End::WrongWay || other.changed;
      return ValueFound{falls ? other.at : first_, falls};
    }
    // Neither direction has the bytes that are searched for, so the first value is a bump or a dip. Takes the usual
    // direction.
    const Walk over = walk(room, false);
    if (over.end == Walk::End::Border) return ValueFound{bisect(over), false};
    return room ? std::optional(ValueFound{over.at, false}) : std::nullopt;
  }

 private:
  const ValueTried& tried(std::size_t index) {
    const auto [place, is_new] = tried_.try_emplace(index);
    if (is_new) place->second = run_(values_[index]);
    return place->second;
  }

  // Returns the index of the nearest value that is at least twice that at `from`, or with `up` false at most half of
  // it. If there is none, returns the outermost index.
  std::size_t further(std::size_t from, bool up) const {
    const auto begin = values_.begin();
    if (up) {
      const auto twice =
          std::lower_bound(begin + static_cast<std::ptrdiff_t>(from) + 1, values_.end(), values_[from] * 2);
      return static_cast<std::size_t>((twice == values_.end() ? twice - 1 : twice) - begin);
    }
    const auto half = std::upper_bound(begin, begin + static_cast<std::ptrdiff_t>(from), values_[from] / 2);
    return static_cast<std::size_t>((half == begin ? half : half - 1) - begin);
  }

  // Ends if the bytes change in the wrong direction, unless `may_turn_back` is false.
  Walk walk(bool up, bool may_turn_back) {
    const bool room = tried(first_).fits;
    Walk walk;
    walk.at = first_;
    while (walk.at != (up ? values_.size() - 1 : 0)) {
      walk.beyond = further(walk.at, up);
      const ValueTried &start = tried(first_), &there = tried(walk.beyond);
      if (there.fits != room) return walk.end = Walk::End::Border, walk;
      if (start.took && there.took && differ(*start.took, *there.took)) {
        if (may_turn_back && (*there.took > *start.took) != room) return walk.end = Walk::End::WrongWay, walk;
        walk.changed = true;
      }
      walk.at = walk.beyond;
    }
    return walk;
  }

  // Returns the index of the value next to the border that fits, or of one a little beyond the border.
  std::size_t bisect(const Walk& border) {
    std::size_t fits = border.at, too_large = border.beyond;
    if (!tried(fits).fits) std::swap(fits, too_large);
    while (std::max(fits, too_large) - std::min(fits, too_large) > 1) {
      const std::size_t middle =
          std::min(fits, too_large) + (std::max(fits, too_large) - std::min(fits, too_large)) / 2;
      (tried(middle).fits ? fits : too_large) = middle;
    }
    const bool up = too_large > fits;
    std::size_t next = too_large;
    for (int i = 0; i < kNeighbours && nearly_fits(next) && next != (up ? values_.size() - 1 : 0); ++i) {
      next = up ? next + 1 : next - 1;
      if (tried(next).fits) fits = next;
    }
    return fits;
  }

  static bool differ(Bytes a, Bytes b) { return std::max(a, b) - std::min(a, b) > std::max(a, b) / kNear; }

  bool nearly_fits(std::size_t index) {
    const ValueTried& one = tried(index);
    return one.fits || (one.took && *one.took - room_ <= room_ / kNear);
  }

  const std::vector<std::int64_t>& values_;
  const std::size_t first_;
  const Bytes room_;
  const std::function<ValueTried(std::int64_t)>& run_;
  std::map<std::size_t, ValueTried> tried_;
};

}  // namespace

ValuesFrom values_from(const Choice& choice, std::int64_t start) {
  ValuesFrom from{choice.values, 0};
  auto at = std::ranges::lower_bound(from.values, start);
  if (at == from.values.end() || *at != start) at = from.values.insert(at, start);
  from.first = static_cast<std::size_t>(at - from.values.begin());
  return from;
}

std::optional<ValueFound> search_values(const std::vector<std::int64_t>& values, std::size_t first,
                                        const ValueTried& at_first, Bytes room,
                                        const std::function<ValueTried(std::int64_t value)>& run) {
  ULLAGE_CHECK(first < values.size(), "the search starts at one of the values");
  return Search(values, first, at_first, room, run).find();
}

}  // namespace ullage::cli
