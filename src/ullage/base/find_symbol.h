// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of libraries that are not linked, looked up where the process or a machine may have them.

#include <dlfcn.h>

namespace ullage {

// Points `function` at the symbol of a library of dlopen(), or RTLD_DEFAULT. False: there is none, and it is null.
template <class Function>
bool find_symbol(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Finds one function after another of a library, all of which are wanted.
class SymbolFinder final {
 public:
  explicit SymbolFinder(void* library) : library_(library) {}
  template <class Function>
  void operator()(Function& function, const char* name) {
    if (!find_symbol(library_, function, name) && missing_ == nullptr) missing_ = name;
  }
  // The name of the first that is missing; null: all are there.
  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

}  // namespace ullage
