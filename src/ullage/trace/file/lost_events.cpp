// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/lost_events.h"

#include "ullage/base/check.h"

#include <algorithm>

namespace ullage::trace {

void LostEvents::add(const Chunk& chunk) {
  EventUnpacker in(chunk.begin, chunk.used());
  PackedEvent event;
  while (in.next(event)) add(event);
  ULLAGE_CHECK(in.problem() == nullptr, "a chunk that was written here cannot be read");
  events_ += chunk.events;
  end_ = in.now();
  if (roles_.size() > forget_at_) forget_roles();
}

void LostEvents::add(const PackedEvent& event) {
  switch (event.kind) {
    case PackedKind::Allocation:
      born_.emplace(event.id, event.amount);
      return;
    case PackedKind::Free:
      if (born_.erase(event.id) == 0) died_.push_back(event.id);
      return;
    case PackedKind::OpEnd:
      if (event.id < begin_.next_op) ended_.push_back({event.id, event.amount});
      return;
    case PackedKind::Role:
      roles_.push_back({event.id, event.flags, event.name});
      return;
    case PackedKind::Border:
      return add_border(event);
    case PackedKind::Charge:
      charged_ += unfold(event.amount);
      return;
    default:
      return;
  }
}

void LostEvents::add_border(const PackedEvent& event) {
  const Border border{event.flags, event.name, event.knobs};
  switch (static_cast<ReportedBorder::What>(event.flags)) {
    case ReportedBorder::What::StepEnd:
      step_end_ = border;
      return;
    case ReportedBorder::What::PhaseBegin:
      phase_begin_ = border;
      return;
    case ReportedBorder::What::PhaseEnd:
      if (!phase_begin_) phase_end_ = border;
      phase_begin_.reset();
      return;
  }
}

// Forgets the roles of storages that were born and died among the lost events. Every step gives its gradients roles, so
// otherwise they would pile up.
void LostEvents::forget_roles() {
  std::erase_if(roles_, [&](const RoleMet& one) { return is_gone(one.storage); });
  forget_at_ = std::max(forget_at_, 2 * roles_.size());
}

GapPart LostEvents::part() const {
  GapPart part;
  part.end = end_;
  part.events = events_;
  part.born.reserve(born_.size());
  for (const auto& [storage, bytes] : born_) part.born.push_back({storage, bytes});
  std::ranges::sort(part.born, {}, &GapPart::Born::storage);
  part.died = died_;
  part.ended = ended_;
  pack_records(part.records);
  return part;
}

// Packs the records as PackedTake does. The borders are in an order that is possible: a phase from before ends, a step
// ends, a phase begins.
void LostEvents::pack_records(PackedBytes& out) const {
  const auto tag = [&](PackedKind kind, unsigned flags) {
    out.push_back(static_cast<std::byte>(static_cast<unsigned>(kind) | flags << 4));
  };
  for (const RoleMet& one : roles_) {
    if (is_gone(one.storage)) continue;
    tag(PackedKind::Role, one.role);
    append_packed(out, end_.next_storage - one.storage);
    append_packed(out, one.name);
  }
  for (const auto* border : {&phase_end_, &step_end_, &phase_begin_}) {
    if (!*border) continue;
    tag(PackedKind::Border, (*border)->what);
    append_packed(out, (*border)->phase);
    append_packed(out, (*border)->knobs.size());
    for (const PackedKnob& knob : (*border)->knobs) {
      append_packed(out, knob.name);
      append_packed(out, fold(knob.value));
    }
  }
  if (charged_ == 0) return;
  tag(PackedKind::Charge, 0);
  append_packed(out, fold(charged_));
}

std::size_t LostEvents::held() const {
  constexpr std::size_t kEntry = 8 * sizeof(std::uint64_t);
  return born_.size() * kEntry + died_.capacity() * sizeof(died_[0]) + ended_.capacity() * sizeof(ended_[0]) +
         roles_.capacity() * sizeof(roles_[0]);
}

}  // namespace ullage::trace
