// SPDX-License-Identifier: Apache-2.0
#pragma once

// Handles of the mathematical libraries: each is an object with room for the few settings that callers read back.

#include <array>
#include <cstdint>

namespace ullage::drycard {

struct LibraryHandle {
  void* stream = nullptr;
  std::array<int, 8> modes{};
};

inline LibraryHandle* handle_from(void* handle) { return static_cast<LibraryHandle*>(handle); }

inline int give_handle(void** handle) {
  *handle = new LibraryHandle;
  return 0;
}

inline int take_handle(void* handle) {
  delete handle_from(handle);
  return 0;
}

}  // namespace ullage::drycard
