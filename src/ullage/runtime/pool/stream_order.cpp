// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/stream_order.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace ullage::runtime {

// Has this thread's stream wait for each other stream on which blocks were freed since it last waited for that one.
void StreamOrder::taken(Address at) {
  const c10::Stream on = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  const std::lock_guard lock(lock_);
  auto& seen = seen_[on.id()];
  for (const auto& [other, freed] : freed_) {
    if (other == on.id() || freed.epoch == seen[other]) continue;
    c10::Event done(device_.type());
    done.record(freed.stream);
    done.block(on);
    seen[other] = freed.epoch;
  }
  users_[at.value] = {on};
}

void StreamOrder::used(Address at, const c10::Stream& on) {
  const std::lock_guard lock(lock_);
  users_[at.value].push_back(on);
}

// Counts a freed block for each stream that used it.
void StreamOrder::freed(Address at) {
  const std::lock_guard lock(lock_);
  const auto users = users_.extract(at.value);
  if (users.empty()) return;
  for (const c10::Stream& user : users.mapped()) ++freed_.try_emplace(user.id(), Freed{user, 0}).first->second.epoch;
}

}  // namespace ullage::runtime
