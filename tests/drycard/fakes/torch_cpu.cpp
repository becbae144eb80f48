// SPDX-License-Identifier: Apache-2.0
// A library that exports nothing and wants something: its hash table is empty.

extern "C" int cudnnOfTorch();
extern "C" int cudaFree();

__attribute__((used)) static int wants() { return cudnnOfTorch() + cudaFree(); }
