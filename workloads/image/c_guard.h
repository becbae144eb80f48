// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls C libraries that report errors by longjmp. A jump over a C++ object with a destructor is undefined. So
// guarded() runs each call. Between its setjmp and the longjmp in the library's error handler are only C frames, and
// one lambda that owns nothing. Code that owns things stays outside, and so do callers' callbacks, which may throw.
//
//   C++ that owns   ->  guarded()  ->  lambda  ->  libpng or libjpeg  ->  error handler
//                       setjmp  <--------------- longjmp -----------------'

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <type_traits>

namespace ullage::image {

struct CGuard {
  std::jmp_buf jump;
  char message[256] = "";  // the library's, set before the jump
  bool no_memory = false;  // the library could not allocate; its message may not say so

  void say(const char* text) { std::snprintf(message, sizeof message, "%s", text); }
  [[noreturn]] void leave() { std::longjmp(jump, 1); }
};

// Runs `body`. Returns false if guard.leave() left it. `body` may hold only references and numbers.
template <class Body>
bool guarded(CGuard& guard, Body body) {
  static_assert(std::is_trivially_destructible_v<Body>, "a jump must not skip destructors");
  if (setjmp(guard.jump) != 0) return false;
  body();
  return true;
}

}  // namespace ullage::image
