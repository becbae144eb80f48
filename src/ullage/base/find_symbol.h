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

}  // namespace ullage
