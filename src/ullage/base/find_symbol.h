// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks up functions of libraries that are not linked, because not every process or machine has them.

#include <dlfcn.h>

namespace ullage {

// Points `function` at the symbol `name` of `library`, which is a handle from dlopen() or RTLD_DEFAULT. If there is no
// such symbol, sets `function` to null and returns false.
template <class Function>
bool find_symbol(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Looks up several functions of one library and remembers the first that is missing.
class SymbolFinder final {
 public:
  explicit SymbolFinder(void* library) : library_(library) {}
  template <class Function>
  void operator()(Function& function, const char* name) {
    if (!find_symbol(library_, function, name) && missing_ == nullptr) missing_ = name;
  }
  // The name of the first missing function; null if none is missing.
  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

}  // namespace ullage
