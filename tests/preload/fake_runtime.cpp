// SPDX-License-Identifier: Apache-2.0
// Stands in for libullage_torch.so. Says when it is loaded. If asked to, ends the process as the real runtime does if
// the budget cannot be kept.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" bool fake_torch_is_ready();

namespace {

__attribute__((constructor)) void start() {
  std::printf("runtime %s torch\n", fake_torch_is_ready() ? "after" : "BEFORE");
  std::fflush(stdout);
  if (const char* code = std::getenv("FAKE_RUNTIME_ENDS")) _exit(std::atoi(code));
}

}  // namespace

extern "C" void fake_runtime_is_linked() {}
