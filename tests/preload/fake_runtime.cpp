// SPDX-License-Identifier: Apache-2.0
// Stands in for libullage_torch.so: tells when it is loaded.

#include <cstdio>

extern "C" bool fake_torch_is_ready();

namespace {

__attribute__((constructor)) void start() {
  std::printf("runtime %s torch\n", fake_torch_is_ready() ? "after" : "BEFORE");
  std::fflush(stdout);
}

}  // namespace

extern "C" void fake_runtime_is_linked() {}
