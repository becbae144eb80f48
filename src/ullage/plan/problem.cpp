// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem.h"

#include <algorithm>

namespace ullage::plan {

Choice plain_choice(const Problem& problem) {
  Choice choice;
  for (const Problem::Slot& slot : problem.slots) choice.after.push_back(slot.plain);
  choice.again.assign(problem.values.size(), 0);
  return choice;
}

void sources(const Problem& problem, const Choice& choice, std::int32_t value, std::vector<std::int32_t>& slots) {
  constexpr std::size_t kMost = 64;  // looked at
  std::vector<std::int32_t> todo{value};
  for (std::size_t i = 0; i < todo.size() && i < kMost; ++i) {
    const Problem::Moved& it = problem.values[static_cast<std::size_t>(todo[i])];
    const std::int32_t way = it.apply >= 0 ? it.apply : it.rerun;
    if (i > 0) {
      const auto kept = [&](std::int32_t slot) { return choice.after[static_cast<std::size_t>(slot)] == After::Keep; };
      const std::int32_t slot = it.last_slot >= 0 ? it.last_slot : it.main_slot;
      if (slot >= 0 && kept(slot)) continue;
      // What is made faster than half of what a copy takes is made again in turn.
      const bool dear = way < 0 || it.pinned ||
                        problem.recipes[static_cast<std::size_t>(way)].seconds >
                            static_cast<double>(it.bytes) * problem.write_seconds / 2;
      if (dear && it.last_slot >= 0) {
        slots.push_back(it.last_slot);
        continue;
      }
    }
    if (way < 0) continue;
    const Range reads = problem.recipes[static_cast<std::size_t>(way)].reads;
    for (std::int32_t r = reads.begin; r < reads.end; ++r) {
      const std::int32_t read = problem.lists[static_cast<std::size_t>(r)];
      if (std::find(todo.begin(), todo.end(), read) == todo.end()) todo.push_back(read);
    }
  }
}

}  // namespace ullage::plan
