// SPDX-License-Identifier: Apache-2.0
// A library that needs functions but exports none, so its hash table is empty.

extern "C" int cudnnOfTorch();
extern "C" int cudaFree();

__attribute__((used)) static int wants() { return cudnnOfTorch() + cudaFree(); }
