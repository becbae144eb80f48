// SPDX-License-Identifier: Apache-2.0
// A program linked to the fake torch. If LINKED is defined, it is linked to the fake runtime too.

#include <cstdio>

extern "C" bool fake_torch_is_ready();
extern "C" void fake_runtime_is_linked();

namespace {

struct First {
  First() { std::puts(fake_torch_is_ready() ? "program" : "program without torch"); }
} g_first;

}  // namespace

int main() {
#ifdef LINKED
  fake_runtime_is_linked();
#endif
  std::puts("main");
  return 0;
}
