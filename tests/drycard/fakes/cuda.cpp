// SPDX-License-Identifier: Apache-2.0
// CUDA libraries to link with; none of them is there when a program runs. Their functions return what no stub returns.
extern "C" {
#ifdef FAKE_CUDART
int cudaMalloc() { return -1; }
int cudaFree() { return -1; }
#else
int ncclVariable = -1;
int ncclCommInitRank() { return -1; }
#endif
}
