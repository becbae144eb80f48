// SPDX-License-Identifier: Apache-2.0
// A CUDA build of torch, to a loader: it wants functions with a version, without one, and of a library that it is not
// linked to.

extern "C" {
int cudaMalloc();
int cudaFree();
int ncclCommInitRank();
int cuInit();
__attribute__((weak)) int cudaOfNoVersion();
#ifdef FAKE_WANTS_VARIABLE
extern int ncclVariable;
#endif

// A name like one of CUDA's, wanted by a program and had by this library.
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
