// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls into C libraries that report errors by a jump. A jump over a C++ object with a destructor is undefined, so each
// call is run by guarded(): between setjmp there and longjmp in the library's error handler lie only C frames and one
// lambda that owns nothing. Code that owns things, and the callbacks of callers (which may throw), stay outside.
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
  char message[256] = "";  // of the library, set before the jump
  bool no_memory = false;  // the library could not allocate; its message may not say so

  void say(const char* text) { std::snprintf(message, sizeof message, "%s", text); }
  [[noreturn]] void leave() { std::longjmp(jump, 1); }
};

// False when `body` was left by guard.leave(). `body` may hold references and numbers only.
template <class Body>
bool guarded(CGuard& guard, Body body) {
  static_assert(std::is_trivially_destructible_v<Body>, "a jump must not skip destructors");
  if (setjmp(guard.jump) != 0) return false;
  body();
  return true;
}

}  // namespace ullage::image
