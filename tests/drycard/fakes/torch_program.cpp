// SPDX-License-Identifier: Apache-2.0
// Linked with the fake torch. Prints what its functions return, and the name that the dry card noted for each.
#include <dlfcn.h>

#include <cstdio>

extern "C" {
int fake_torch_malloc();
int fake_torch_free();
int fake_torch_nccl();
int fake_torch_driver();
bool fake_torch_has_weak();
}

namespace {
void say(int value) {
  const auto last_name = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "fake_drycard_last_name"));
  std::printf("%d %s\n", value, last_name != nullptr ? last_name() : "no dry card");
}
}  // namespace

int main() {
  say(fake_torch_malloc());
  say(fake_torch_free());
  say(fake_torch_nccl());
  say(fake_torch_driver());
  std::printf("weak %d\n", fake_torch_has_weak());
  // Opens the driver by name, as torch does. The driver's stub has no cudaMalloc; dlsym finds it in the dry card, on
  // which the stub depends.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  std::printf("driver %s\n", driver == nullptr ? dlerror() : dlsym(driver, "cudaMalloc") ? "open" : "empty");
}
