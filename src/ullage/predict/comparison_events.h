// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small helpers that ask what kind of event a trace's event is, for the code that compares and rewrites takes.

#include "ullage/trace/recording/trace.h"

#include <variant>

namespace ullage::predict {

template <class T>
const T* as(const trace::Event& event) {
  return std::get_if<T>(&event.what);
}

inline bool is_birth_or_death(const trace::Event& event) {
  return as<trace::event::Allocation>(event) || as<trace::event::Free>(event);
}

// The storage of a birth, a death or a request to free; null for other events.
inline const StorageId* storage_of(const trace::Event& event) {
  if (const auto* born = as<trace::event::Allocation>(event)) return &born->storage;
  if (const auto* died = as<trace::event::Free>(event)) return &died->storage;
  if (const auto* asked = as<trace::event::FreeRequest>(event)) return &asked->storage;
  return nullptr;
}

// Does a storage die, is its free requested, or does autograd release it?
inline bool is_death(const trace::Event& event) {
  return as<trace::event::Free>(event) || as<trace::event::FreeRequest>(event) || as<trace::event::Unsave>(event);
}

}  // namespace ullage::predict
