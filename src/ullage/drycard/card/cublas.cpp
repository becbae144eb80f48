// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cuBLASLt: handles and their settings. Every product has one algorithm without a workspace of its own.
// Torch allocates the workspaces of its cuBLAS calls itself (cublasSetWorkspace), so they count like its tensors.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/handles.h"
#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/streams.h"
#include "ullage/drycard/card/work.h"

#include <algorithm>
#include <cstring>

namespace ullage::drycard {
namespace {

enum Mode { kPointer, kMath, kAtomics, kSmCount };

struct LtResult {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(LtResult) == 96);

// The memory of workspaces that the program gave, the oldest first. More are not kept: a program has one for each
// handle and stream.
struct Workspace {
  Address at;
  std::size_t bytes;
};
constexpr std::size_t kMostWorkspaces = 64;
Workspace workspaces[kMostWorkspaces];
std::size_t workspace_count = 0;

void note_workspace(void* at, std::size_t bytes) {
  const std::scoped_lock held(lock());
  const Workspace one{reinterpret_cast<Address>(at), bytes};
  const auto end = workspaces + workspace_count;
  const bool is_known = std::any_of(
      workspaces, end, [&](const Workspace& other) { return other.at == one.at && other.bytes == one.bytes; });
  if (at != nullptr && !is_known && workspace_count < kMostWorkspaces) workspaces[workspace_count++] = one;
}

int get(void* handle, Mode mode, int* value) {
  *value = handle_from(handle)->modes[mode];
  return 0;
}
int set_mode(void* handle, Mode mode, int value) {
  handle_from(handle)->modes[mode] = value;
  return 0;
}
int version() { return machine().cuda >= 13 ? 130000 : 120900; }

int property(int kind, int* value) {
  *value = kind == 0 ? version() / 10000 : kind == 1 ? version() / 100 % 100 : 0;
  return 0;
}

int product(void* handle, const char* name, const void* a, const void* b, const void* c) {
  note_library_work();
  const Address pointers[] = {reinterpret_cast<Address>(a), reinterpret_cast<Address>(b), reinterpret_cast<Address>(c)};
  give_kernel(handle_from(handle)->stream, name, pointers);
  return 0;
}

}  // namespace

// The functions for products of matrices that torch calls. Nothing is computed; only the addresses of the three
// matrices are used.
#define ULLAGE_CUBLAS_GEMM(name)                                                                                       \
  ULLAGE_CARD_API int name(void* handle, int, int, int, int, int, const void*, const void* a, int, const void* b, int, \
                           const void*, void* c, int) {                                                                \
    return product(handle, #name, a, b, c);                                                                            \
  }
ULLAGE_CUBLAS_GEMM(cublasSgemm_v2)
ULLAGE_CUBLAS_GEMM(cublasDgemm_v2)
ULLAGE_CUBLAS_GEMM(cublasCgemm_v2)
ULLAGE_CUBLAS_GEMM(cublasZgemm_v2)
#undef ULLAGE_CUBLAS_GEMM
#define ULLAGE_CUBLAS_GEMM_STRIDED(name)                                                                      \
  ULLAGE_CARD_API int name(void* handle, int, int, int, int, int, const void*, const void* a, int, long long, \
                           const void* b, int, long long, const void*, void* c, int, long long, int) {        \
    return product(handle, #name, a, b, c);                                                                   \
  }
ULLAGE_CUBLAS_GEMM_STRIDED(cublasSgemmStridedBatched)
ULLAGE_CUBLAS_GEMM_STRIDED(cublasDgemmStridedBatched)
ULLAGE_CUBLAS_GEMM_STRIDED(cublasCgemmStridedBatched)
ULLAGE_CUBLAS_GEMM_STRIDED(cublasZgemmStridedBatched)
#undef ULLAGE_CUBLAS_GEMM_STRIDED
ULLAGE_CARD_API int cublasGemmEx(void* handle, int, int, int, int, int, const void*, const void* a, int, int,
                                 const void* b, int, int, const void*, void* c, int, int, int, int) {
  return product(handle, "cublasGemmEx", a, b, c);
}
ULLAGE_CARD_API int cublasSgemmEx(void* handle, int, int, int, int, int, const void*, const void* a, int, int,
                                  const void* b, int, int, const void*, void* c, int, int) {
  return product(handle, "cublasSgemmEx", a, b, c);
}
ULLAGE_CARD_API int cublasGemmStridedBatchedEx(void* handle, int, int, int, int, int, const void*, const void* a, int,
                                               int, long long, const void* b, int, int, long long, const void*, void* c,
                                               int, int, long long, int, int, int) {
  return product(handle, "cublasGemmStridedBatchedEx", a, b, c);
}
ULLAGE_CARD_API int cublasLtMatmul(void*, void*, const void*, const void* a, void*, const void* b, void*, const void*,
                                   const void* c, void*, void* d, void*, const void*, void* workspace, std::size_t,
                                   void* stream) {
  note_library_work();
  const Address pointers[] = {reinterpret_cast<Address>(a), reinterpret_cast<Address>(b), reinterpret_cast<Address>(c),
                              reinterpret_cast<Address>(d), reinterpret_cast<Address>(workspace)};
  give_kernel(stream, "cublasLtMatmul", pointers);
  return 0;
}

ULLAGE_CARD_API int cublasCreate_v2(void** handle) {
  if (const Error error = use_current(); error != kSuccess) return 1;  // CUBLAS_STATUS_NOT_INITIALIZED
  return give_handle(handle);
}
ULLAGE_CARD_API int cublasDestroy_v2(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API int cublasGetVersion_v2(void*, int* value) {
  *value = version();
  return 0;
}
ULLAGE_CARD_API int cublasGetProperty(int kind, int* value) { return property(kind, value); }
ULLAGE_CARD_API std::size_t cublasGetCudartVersion() { return static_cast<std::size_t>(machine().version); }
ULLAGE_CARD_API const char* cublasGetStatusName(int status) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS";
}
ULLAGE_CARD_API const char* cublasGetStatusString(int status) { return status == 0 ? "success" : "failed"; }
ULLAGE_CARD_API int cublasSetStream_v2(void* handle, void* stream) {
  handle_from(handle)->stream = stream;
  return 0;
}
ULLAGE_CARD_API int cublasGetStream_v2(void* handle, void** stream) {
  *stream = handle_from(handle)->stream;
  return 0;
}
ULLAGE_CARD_API int cublasSetWorkspace_v2(void*, void* workspace, std::size_t bytes) {
  note_workspace(workspace, bytes);
  return 0;
}
// Writes addresses and sizes of at most `most` workspaces that the program gave to cuBLAS. Returns how many.
ULLAGE_CARD_API int ullage_drycard_workspaces(std::uint64_t* at, std::uint64_t* bytes, int most) {
  const std::scoped_lock held(lock());
  const int count = std::min(static_cast<int>(workspace_count), most);
  for (int i = 0; i < count; ++i) at[i] = workspaces[i].at, bytes[i] = workspaces[i].bytes;
  return count;
}
ULLAGE_CARD_API int cublasGetPointerMode_v2(void* handle, int* mode) { return get(handle, kPointer, mode); }
ULLAGE_CARD_API int cublasSetPointerMode_v2(void* handle, int mode) { return set_mode(handle, kPointer, mode); }
ULLAGE_CARD_API int cublasGetMathMode(void* handle, int* mode) { return get(handle, kMath, mode); }
ULLAGE_CARD_API int cublasSetMathMode(void* handle, int mode) { return set_mode(handle, kMath, mode); }
ULLAGE_CARD_API int cublasGetAtomicsMode(void* handle, int* mode) { return get(handle, kAtomics, mode); }
ULLAGE_CARD_API int cublasSetAtomicsMode(void* handle, int mode) { return set_mode(handle, kAtomics, mode); }
ULLAGE_CARD_API int cublasGetSmCountTarget(void* handle, int* count) { return get(handle, kSmCount, count); }
ULLAGE_CARD_API int cublasSetSmCountTarget(void* handle, int count) { return set_mode(handle, kSmCount, count); }

ULLAGE_CARD_API int cublasLtCreate(void** handle) { return give_handle(handle); }
ULLAGE_CARD_API int cublasLtDestroy(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API std::size_t cublasLtGetVersion() { return static_cast<std::size_t>(version()); }
ULLAGE_CARD_API std::size_t cublasLtGetCudartVersion() { return static_cast<std::size_t>(machine().version); }
ULLAGE_CARD_API int cublasLtGetProperty(int kind, int* value) { return property(kind, value); }
ULLAGE_CARD_API int cublasLtMatmulDescCreate(void** handle) { return give_handle(handle); }
ULLAGE_CARD_API int cublasLtMatmulDescDestroy(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API int cublasLtMatrixLayoutCreate(void** handle) { return give_handle(handle); }
ULLAGE_CARD_API int cublasLtMatrixLayoutDestroy(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API int cublasLtMatmulPreferenceCreate(void** handle) { return give_handle(handle); }
ULLAGE_CARD_API int cublasLtMatmulPreferenceDestroy(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API int cublasLtMatrixTransformDescCreate(void** handle) { return give_handle(handle); }
ULLAGE_CARD_API int cublasLtMatrixTransformDescDestroy(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int asked,
                                                   LtResult* results, int* count) {
  *count = std::min(asked, 1);
  if (*count == 1) std::memset(results, 0, sizeof *results);
  return 0;
}
ULLAGE_CARD_API int cublasLtMatmulAlgoGetIds(void*, int, int, int, int, int, int, int asked, int* ids, int* count) {
  if (asked > 0) ids[0] = 0;
  *count = std::min(asked, 1);
  return 0;
}
ULLAGE_CARD_API int cublasLtMatmulAlgoCheck(void*, void*, void*, void*, void*, void*, void*, LtResult* result) {
  std::memset(result, 0, sizeof *result);
  return 0;
}

}  // namespace ullage::drycard
