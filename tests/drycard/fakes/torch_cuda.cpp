// SPDX-License-Identifier: Apache-2.0
// Looks to the loader like a CUDA build of torch. It needs functions with a version, functions without one, and a
// function of a library that it is not linked with.

extern "C" {
int cudaMalloc();
int cudaFree();
int ncclCommInitRank();
int cuInit();
__attribute__((weak)) int cudaOfNoVersion();
#ifdef FAKE_WANTS_VARIABLE
extern int ncclVariable;
#endif

// Has a name like CUDA's, but this library itself defines it.
int cudnnOfTorch() { return 1; }

int fake_torch_malloc() { return cudaMalloc(); }
int fake_torch_free() { return cudaFree(); }
int fake_torch_nccl() { return ncclCommInitRank(); }
int fake_torch_driver() { return cuInit(); }
bool fake_torch_has_weak() { return cudaOfNoVersion != nullptr; }
#ifdef FAKE_WANTS_VARIABLE
int fake_torch_variable() { return ncclVariable; }
#endif
}
