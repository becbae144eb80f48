// SPDX-License-Identifier: Apache-2.0
// Stands in for libtorch_cpu.so: says its version the way torch does, and whether its own constructors have run.

#include <cstdint>

namespace {

bool g_ready = false;

__attribute__((constructor)) void initialise() { g_ready = true; }

}  // namespace

extern "C" bool fake_torch_is_ready() { return g_ready; }

#ifndef FAKE_TORCH_IS_OLD
extern "C" std::uint64_t aoti_torch_abi_version() {
  return std::uint64_t{9} << 56 | std::uint64_t{8} << 48 | std::uint64_t{FAKE_TORCH_PATCH} << 40;
}
#endif
