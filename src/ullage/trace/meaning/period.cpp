// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/period.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace ullage::trace {
namespace {

// A turn is one pass through the loop. A place is an index of the sequence of symbols.
constexpr std::size_t kContext = 6;      // consecutive symbols that must be equal to call two places equal
constexpr std::size_t kLeastTurns = 3;   // fewer are no loop
constexpr std::size_t kCandidates = 24;  // periods that match() is computed for
constexpr double kLeastMatch = 0.7;      // a period needs at least this match()
constexpr double kEqualMatch = 0.05;     // matches that differ by less count as equal: the shorter period wins
constexpr std::size_t kMostDrift = 4;    // the length of a turn may differ from the period by 1/4

std::uint64_t mix(std::uint64_t x) {  // the finalizer of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The context of a place: the kContext symbols from there on. Equal contexts have equal numbers.
struct Contexts {
  std::vector<std::uint32_t> at;      // by place
  std::vector<std::uint32_t> counts;  // by number: how many places have it
};

Contexts contexts(std::span<const std::uint64_t> symbols) {
  Contexts contexts;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (std::size_t i = 0; i + kContext <= symbols.size(); ++i) {
    std::uint64_t hash = 0;
    for (const std::uint64_t one : symbols.subspan(i, kContext)) hash = mix(hash ^ one) + one;
    const auto [found, is_new] = numbers.try_emplace(hash, std::uint32_t(numbers.size()));
    if (is_new) contexts.counts.push_back(0);
    ++contexts.counts[found->second];
    contexts.at.push_back(found->second);
  }
  return contexts;
}

// The most frequent distances between a place and the next one of the same context, ascending. A loop inside the turns
// gets more votes than the turns themselves, so many candidates are kept.
std::vector<std::size_t> candidates(const Contexts& contexts) {
  constexpr std::size_t kNowhere = SIZE_MAX;
  std::vector<std::size_t> last(contexts.counts.size(), kNowhere);
  std::unordered_map<std::size_t, std::size_t> votes;
  for (std::size_t i = 0; i < contexts.at.size(); ++i) {
    const std::size_t before = std::exchange(last[contexts.at[i]], i);
    if (before != kNowhere && (i - before) * kLeastTurns <= contexts.at.size() + kContext) ++votes[i - before];
  }
  std::vector<std::pair<std::size_t, std::size_t>> order;
  order.reserve(votes.size());
  for (const auto& [distance, count] : votes) order.emplace_back(count, distance);
  std::ranges::sort(order, std::greater<>());
  std::vector<std::size_t> distances;
  for (const auto& [count, distance] : order) {
    if (distances.size() == kCandidates) break;
    distances.push_back(distance);
  }
  std::ranges::sort(distances);
  return distances;
}

// The share of contexts that mostly repeat one period later, among those that repeat at all. Each context counts once,
// however often it comes. So the period of the layers fails for all contexts around the layers. A single turn of
// another length does little harm, because each context then fails only once.
double match(const Contexts& contexts, std::size_t period) {
  std::vector<std::uint32_t> met(contexts.counts.size());
  for (std::size_t i = 0; i + period < contexts.at.size(); ++i) {
    met[contexts.at[i]] += contexts.at[i] == contexts.at[i + period];
  }
  std::size_t again = 0, equal = 0;
  for (std::size_t i = 0; i < met.size(); ++i) {
    if (contexts.counts[i] < 2) continue;
    ++again;
    equal += met[i] * 2 >= contexts.counts[i] - 1;  // the last place has no next one
  }
  return again == 0 ? 0 : double(equal) / double(again);
}

std::size_t find_period(const Contexts& contexts) {
  std::size_t best = 0;
  double best_match = 0;
  for (const std::size_t distance : candidates(contexts)) {
    const double here = match(contexts, distance);
    if (here <= best_match + kEqualMatch) continue;
    best = distance;
    best_match = here;
  }
  return best_match >= kLeastMatch ? best : 0;
}

struct Place {
  std::size_t count = 0;  // how often the context comes
  std::size_t wrong = 0;  // how often its distance from the one before is not about one period
  std::size_t last = 0;
  double level = 0;  // sum of the levels there
};

// The context with the lowest average level, among those that come about once per turn. None if there is none.
std::optional<std::uint32_t> find_border(const Contexts& contexts, std::span<const std::uint64_t> levels,
                                         std::size_t period) {
  std::vector<Place> places(contexts.counts.size());
  std::size_t repeated = 0;
  for (std::size_t i = 0; i < contexts.at.size(); ++i) {
    repeated += i + period < contexts.at.size() && contexts.at[i] == contexts.at[i + period];
    Place& one = places[contexts.at[i]];
    if (one.count > 0) {
      const std::size_t distance = i - one.last;
      const std::size_t off = distance > period ? distance - period : period - distance;
      one.wrong += off * kMostDrift > period;
    }
    ++one.count;
    one.last = i;
    one.level += double(levels[i]);
  }
  const std::size_t turns = std::max(kLeastTurns, repeated / period);
  std::optional<std::uint32_t> border;
  double lowest = 0;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    const Place& one = places[i];
    if (one.count * 4 < turns * 3 || one.count < kLeastTurns || one.wrong * 4 > one.count) continue;
    const double level = one.level / double(one.count);
    if (border && level >= lowest) continue;  // the first of equals wins
    lowest = level;
    border = i;
  }
  return border;
}

}  // namespace

std::vector<std::size_t> find_turns(std::span<const std::uint64_t> symbols, std::span<const std::uint64_t> levels) {
  ULLAGE_CHECK(symbols.size() == levels.size(), "levels of another sequence");
  ULLAGE_CHECK(symbols.size() < UINT32_MAX, "more symbols than places are counted");
  const Contexts all = contexts(symbols);
  const std::size_t period = find_period(all);
  if (period == 0) return {};
  const std::optional<std::uint32_t> border = find_border(all, levels, period);
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; border && i < all.at.size(); ++i) {
    if (all.at[i] != *border) continue;
    if (turns.empty() || (i - turns.back()) * 2 > period) turns.push_back(i);
  }
  return turns.size() >= kLeastTurns ? turns : std::vector<std::size_t>();
}

bool begin_level(std::span<const std::uint64_t> levels, std::span<const std::size_t> turns) {
  std::uint64_t lowest = UINT64_MAX, highest = 0;
  std::size_t computing = 0;  // turns in which something is held beyond what is there at their begin
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::uint64_t begin = levels[turns[i]];
    lowest = std::min(lowest, begin);
    highest = std::max(highest, begin);
    const std::size_t end = i + 1 < turns.size() ? turns[i + 1] : levels.size();
    computing += std::ranges::any_of(levels.subspan(turns[i], end - turns[i]), [&](auto at) { return at > begin; });
  }
  const std::uint64_t top = std::ranges::max(levels);
  return computing * 2 > turns.size() && highest - lowest <= (top - lowest) / 4;
}

}  // namespace ullage::trace
