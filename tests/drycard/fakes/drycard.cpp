// SPDX-License-Identifier: Apache-2.0
// A dry card with three functions. One is implemented, one notes the name of the stub that called it, and one returns
// that name.

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
