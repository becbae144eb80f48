// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/problem.h"

#include <algorithm>

namespace ullage::plan {

Choice plain_choice(const Problem& problem) {
  Choice choice;
  for (const Problem::Slot& slot : problem.slots) choice.after.push_back(slot.plain);
  choice.again.assign(problem.values.size(), 0);
  return choice;
}

void sources(const Problem& problem, const Choice& choice, MovedIndex value, std::vector<SlotIndex>& slots) {
  constexpr std::size_t kMost = 64;  // values to follow
  std::vector<MovedIndex> todo{value};
  for (std::size_t i = 0; i < todo.size() && i < kMost; ++i) {
    const Problem::Moved& it = problem.values[todo[i]];
    const RecipeIndex way = it.batch_norm != kNone ? it.batch_norm : it.recompute;
    if (i > 0) {
      const auto kept = [&](SlotIndex slot) { return choice.after[slot] == After::Keep; };
      const SlotIndex slot = it.last_slot != kNone ? it.last_slot : it.main_slot;
      if (slot != kNone && kept(slot)) continue;
      // A value that can be recomputed in at most half the time of writing it is recomputed in turn.
      const bool dear = way == kNone || it.pinned ||
                        problem.recipes[way].seconds > static_cast<double>(it.bytes) * problem.write_seconds / 2;
      if (dear && it.last_slot != kNone) {
        slots.push_back(it.last_slot);
        continue;
      }
    }
    if (way == kNone) continue;
    for (const MovedIndex read : problem.lists[problem.recipes[way].reads])
      if (std::find(todo.begin(), todo.end(), read) == todo.end()) todo.push_back(read);
  }
}

}  // namespace ullage::plan
