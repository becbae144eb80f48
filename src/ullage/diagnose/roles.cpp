// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/roles.h"

#include "ullage/diagnose/pool_layout.h"
#include "ullage/diagnose/signs.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <map>
#include <string_view>

namespace ullage::diagnose {
namespace {

using trace::Category;

struct StackKind {
  bool logits = false;
  bool attention = false;
  bool scores = false;
  bool loading = false;
  bool cache = false;
  bool foreach = false;

  void add(const StackKind& frame) {
    logits |= frame.logits, attention |= frame.attention, scores |= frame.scores;
    loading |= frame.loading, cache |= frame.cache, foreach |= frame.foreach;
  }
};

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

StackKind kind_of(const trace::Frame& frame) {
  Signs signs;
  signs.look_at_frame(frame, {});
  StackKind kind;
  kind.logits = signs.has(Sign::Loss), kind.attention = signs.has(Sign::Attention);
  kind.loading = signs.has(Sign::Loading);
  kind.scores = has_any(frame.function, {"softmax", "scaled_dot_product"}) && !has_any(frame.function, {"log_softmax"});
  kind.cache = has_any(frame.file, {"cache_utils", "kv_cache", "kvcache"});
  kind.foreach = has_any(frame.function, {"_multi_tensor", "_foreach_"});
  return kind;
}

// Looks at each frame and each stack only once.
std::vector<StackKind> kinds_of_stacks(const trace::Stacks& stacks) {
  std::vector<StackKind> frames(stacks.frame_count());
  for (std::uint32_t i = 0; i < stacks.frame_count(); ++i) frames[i] = kind_of(stacks.frame(trace::FrameId{i}));
  std::vector<StackKind> kinds(stacks.stack_count());
  for (std::uint32_t i = 0; i < stacks.stack_count(); ++i) {
    for (trace::FrameId frame : stacks.frames(trace::StackId{i})) kinds[i].add(frames[frame.value]);
  }
  return kinds;
}

std::uint8_t bit(Role role) { return static_cast<std::uint8_t>(role); }

std::uint8_t role_of(const trace::Storage& storage, const StackKind& kind, const trace::StackMeaning& meaning,
                     Category category) {
  constexpr Bytes kWorthNaming = 1_MiB;  // smaller logits and scores are no cause
  std::uint8_t role = 0;
  const bool optimizer = meaning.phase == trace::Phase::Optimizer;
  if (optimizer && kind.foreach && category == Category::Temporaries) role |= bit(Role::Foreach);
  if (category != Category::Activations && category != Category::Temporaries && category != Category::Unattributed) {
    return role;
  }
  const bool large = storage.bytes >= kWorthNaming;
  if (kind.cache) {
    role |= bit(Role::Cache);
  } else if (kind.logits && large) {
    role |= bit(Role::Logits);
  } else if (kind.attention && kind.scores && large) {
    role |= bit(Role::AttentionScores);
  }
  const bool kept = category == Category::Activations && !kind.cache;
  if (kept && meaning.phase == trace::Phase::Evaluation) role |= bit(Role::Evaluation);
  return role;
}

// Marks live storages ("twins") that were read from a file and match, by size, a live parameter that was not. Each
// parameter matches one.
void find_twins(Roles& roles, const trace::Trace& trace, const std::vector<StackKind>& kinds,
                const std::vector<StorageId>& live, const std::vector<Category>& categories) {
  std::map<Bytes, std::uint64_t> parameters_by_size;
  const auto loading = [&](StorageId id) { return kinds[trace.storages[id.value].stack.value].loading; };
  for (StorageId id : live) {
    if (categories[id.value] == Category::Parameters && !loading(id))
      ++parameters_by_size[trace.storages[id.value].bytes];
  }
  for (StorageId id : live) {
    if (!loading(id)) continue;
    const auto twin = parameters_by_size.find(trace.storages[id.value].bytes);
    if (twin == parameters_by_size.end() || twin->second == 0) continue;
    --twin->second;
    roles.of[id.value] |= bit(Role::LoadedAgain);
  }
}

void find_old_gradients(Roles& roles, const trace::Trace& trace, const std::vector<StorageId>& live,
                        const std::vector<Category>& categories, const trace::Steps& steps,
                        const trace::Moment& moment) {
  if (!moment.event) return;
  EventId begin{0};
  for (EventId each : steps.begins) {
    if (each <= *moment.event) begin = each;
  }
  for (StorageId id : live) {
    const trace::Storage& storage = trace.storages[id.value];
    const bool old = storage.from_before || storage.born < begin;
    if (old && categories[id.value] == Category::Gradients) roles.of[id.value] |= bit(Role::OldGradient);
  }
}

void count(Roles& roles, const trace::Trace& trace, const std::vector<trace::StackMeaning>& meanings,
           const std::vector<StorageId>& live) {
  for (StorageId id : live) {
    const trace::Storage& storage = trace.storages[id.value];
    for (std::size_t i = 0; i < roles.at_moment.size(); ++i) {
      if ((roles.of[id.value] >> i & 1) == 0) continue;
      Kind& kind = roles.at_moment[i];
      kind.bytes += storage.bytes;
      ++kind.storages;
      if (storage.bytes <= kind.largest && kind.storages > 1) continue;
      kind.largest = storage.bytes;
      kind.where = trace::owner_name(storage, meanings);
    }
  }
}

}  // namespace

const Kind& Roles::kind(Role role) const {
  return at_moment[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint8_t>(role)))];
}

Roles roles(const trace::Trace& trace, const trace::Stacks& stacks, const std::vector<trace::StackMeaning>& meanings,
            const std::vector<trace::Category>& categories, const trace::Steps& steps, const trace::Moment& moment) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  Roles roles;
  roles.of.resize(trace.storages.size());
  const std::vector<StackKind> kinds = kinds_of_stacks(stacks);
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const trace::Storage& storage = trace.storages[i];
    const trace::StackMeaning& meaning = meanings[storage.stack.value];
    const StackKind& kind = kinds[storage.stack.value];
    roles.of[i] = role_of(storage, kind, meaning, categories[i]);
    roles.trains |= meaning.phase == trace::Phase::Backward || meaning.phase == trace::Phase::Optimizer;
    roles.foreach |= kind.foreach;
    const bool up_to_moment = moment.event ? storage.born <= *moment.event : storage.from_before;
    if (up_to_moment && (roles.of[i] & bit(Role::Evaluation)) != 0 &&
        storage.bytes.count < kMost - roles.made_in_evaluation.count) {
      roles.made_in_evaluation += storage.bytes;
    }
  }
  const std::vector<StorageId> live = live_at(trace, moment);
  find_twins(roles, trace, kinds, live, categories);
  find_old_gradients(roles, trace, live, categories, steps, moment);
  count(roles, trace, meanings, live);
  return roles;
}

}  // namespace ullage::diagnose
