// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/rows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace ullage::report {

std::vector<unsigned> rows_of(const std::vector<Extent>& extents) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return extents[a].begin < extents[b].begin; });
  using Taken = std::pair<std::int64_t, unsigned>;  // until, row
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken;
  std::set<unsigned> free;
  unsigned rows = 0;
  std::vector<unsigned> result(extents.size());
  for (const std::size_t i : order) {
    for (; !taken.empty() && taken.top().first <= extents[i].begin; taken.pop()) free.insert(taken.top().second);
    if (free.empty()) free.insert(rows++);
    result[i] = *free.begin();
    free.erase(free.begin());
    taken.emplace(extents[i].end, result[i]);
  }
  return result;
}

}  // namespace ullage::report
