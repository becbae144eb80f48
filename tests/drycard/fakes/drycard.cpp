// SPDX-License-Identifier: Apache-2.0
// The dry card's library, of two functions: what is implemented, and what notes the name of a stub that was called.

namespace {
const char* last_name = "";
}

extern "C" {
int ullage_drycard_unknown(const char* name) {
  last_name = name;
  return 7;
}
const char* fake_drycard_last_name() { return last_name; }
int cudaMalloc() { return 40; }
}
