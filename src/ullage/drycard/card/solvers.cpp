// SPDX-License-Identifier: Apache-2.0
// cuSOLVER, cuSPARSE, cuFFT and cuRAND: handles, and workspaces of 0 bytes. How much these libraries need on a real
// card is not known here. So the sizes by which callers allocate are 0, which is less than a real card would say.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/handles.h"
#include "ullage/drycard/card/process.h"

#include <atomic>
#include <cstdarg>

namespace ullage::drycard {
namespace {

// Returns the argument `index` after the first one. Each takes one word on x86-64, whatever its type, because none of
// these functions takes a floating-point number or a structure by value.
void* argument(va_list& list, int index) {
  void* value = nullptr;
  for (int i = 0; i < index; ++i) value = va_arg(list, void*);
  return value;
}

}  // namespace

// Defines the function `name`, whose argument `index` (counted from 0) points to a size of type `type`, which is set to
// 0.
#define ULLAGE_NO_BYTES(name, type, index)                                 \
  ULLAGE_CARD_API int name(void*, ...);                                    \
  ULLAGE_CARD_API int name(void* first, ...) {                             \
    va_list list;                                                          \
    va_start(list, first);                                                 \
    if (void* size = argument(list, index)) *static_cast<type*>(size) = 0; \
    va_end(list);                                                          \
    return 0;                                                              \
  }
// The same for two sizes, of the device's and the host's workspace, in consecutive arguments.
#define ULLAGE_NO_BYTES_TWICE(name, index)                                        \
  ULLAGE_CARD_API int name(void*, ...);                                           \
  ULLAGE_CARD_API int name(void* first, ...) {                                    \
    va_list list;                                                                 \
    va_start(list, first);                                                        \
    if (void* size = argument(list, index)) *static_cast<std::size_t*>(size) = 0; \
    if (void* size = argument(list, 1)) *static_cast<std::size_t*>(size) = 0;     \
    va_end(list);                                                                 \
    return 0;                                                                     \
  }
#define ULLAGE_GIVES_HANDLE(name) \
  ULLAGE_CARD_API int name(void** handle) { return give_handle(handle); }
#define ULLAGE_TAKES_HANDLE(name) \
  ULLAGE_CARD_API int name(void* handle) { return take_handle(handle); }

ULLAGE_NO_BYTES(cusolverDnSgeqrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnDgeqrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnCgeqrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnZgeqrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnSgesvd_bufferSize, int, 3)
ULLAGE_NO_BYTES(cusolverDnDgesvd_bufferSize, int, 3)
ULLAGE_NO_BYTES(cusolverDnCgesvd_bufferSize, int, 3)
ULLAGE_NO_BYTES(cusolverDnZgesvd_bufferSize, int, 3)
ULLAGE_NO_BYTES(cusolverDnSgesvdaStridedBatched_bufferSize, int, 16)
ULLAGE_NO_BYTES(cusolverDnDgesvdaStridedBatched_bufferSize, int, 16)
ULLAGE_NO_BYTES(cusolverDnCgesvdaStridedBatched_bufferSize, int, 16)
ULLAGE_NO_BYTES(cusolverDnZgesvdaStridedBatched_bufferSize, int, 16)
ULLAGE_NO_BYTES(cusolverDnSgesvdj_bufferSize, int, 12)
ULLAGE_NO_BYTES(cusolverDnDgesvdj_bufferSize, int, 12)
ULLAGE_NO_BYTES(cusolverDnCgesvdj_bufferSize, int, 12)
ULLAGE_NO_BYTES(cusolverDnZgesvdj_bufferSize, int, 12)
ULLAGE_NO_BYTES(cusolverDnSgesvdjBatched_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnDgesvdjBatched_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnCgesvdjBatched_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnZgesvdjBatched_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnSgetrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnDgetrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnCgetrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnZgetrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnSpotrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnDpotrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnCpotrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnZpotrf_bufferSize, int, 5)
ULLAGE_NO_BYTES(cusolverDnSsytrf_bufferSize, int, 4)
ULLAGE_NO_BYTES(cusolverDnDsytrf_bufferSize, int, 4)
ULLAGE_NO_BYTES(cusolverDnCsytrf_bufferSize, int, 4)
ULLAGE_NO_BYTES(cusolverDnZsytrf_bufferSize, int, 4)
ULLAGE_NO_BYTES(cusolverDnSsyevd_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnDsyevd_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnCheevd_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnZheevd_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnSsyevjBatched_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnDsyevjBatched_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnCheevjBatched_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnZheevjBatched_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnSsyevj_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnDsyevj_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnCheevj_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnZheevj_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnSorgqr_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnDorgqr_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnCungqr_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnZungqr_bufferSize, int, 7)
ULLAGE_NO_BYTES(cusolverDnSormqr_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnDormqr_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnCunmqr_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusolverDnZunmqr_bufferSize, int, 11)
ULLAGE_NO_BYTES_TWICE(cusolverDnXgeqrf_bufferSize, 10)
ULLAGE_NO_BYTES_TWICE(cusolverDnXpotrf_bufferSize, 8)
ULLAGE_NO_BYTES_TWICE(cusolverDnXgetrf_bufferSize, 8)
ULLAGE_NO_BYTES_TWICE(cusolverDnXsyevd_bufferSize, 11)
ULLAGE_NO_BYTES_TWICE(cusolverDnXsyevBatched_bufferSize, 11)
ULLAGE_NO_BYTES_TWICE(cusolverDnXsytrs_bufferSize, 11)
ULLAGE_NO_BYTES_TWICE(cusolverDnXgeev_bufferSize, 17)

ULLAGE_GIVES_HANDLE(cusolverDnCreate)
ULLAGE_GIVES_HANDLE(cusolverDnCreateParams)
ULLAGE_GIVES_HANDLE(cusolverDnCreateGesvdjInfo)
ULLAGE_GIVES_HANDLE(cusolverDnCreateSyevjInfo)
ULLAGE_GIVES_HANDLE(cusparseCreate)
ULLAGE_GIVES_HANDLE(cusparseCreateMatDescr)
ULLAGE_GIVES_HANDLE(cusparseCreateCsr)
ULLAGE_GIVES_HANDLE(cusparseCreateCsc)
ULLAGE_GIVES_HANDLE(cusparseCreateCoo)
ULLAGE_GIVES_HANDLE(cusparseCreateBsr)
ULLAGE_GIVES_HANDLE(cusparseCreateBlockedEll)
ULLAGE_GIVES_HANDLE(cusparseCreateDnMat)
ULLAGE_GIVES_HANDLE(cusparseCreateDnVec)
ULLAGE_GIVES_HANDLE(cusparseCreateSpVec)
ULLAGE_GIVES_HANDLE(cusparseCreateBsrsm2Info)
ULLAGE_GIVES_HANDLE(cusparseCreateBsrsv2Info)
ULLAGE_GIVES_HANDLE(cusparseSpGEMM_createDescr)
ULLAGE_GIVES_HANDLE(cusparseSpSM_createDescr)
ULLAGE_GIVES_HANDLE(cusparseSpSV_createDescr)
ULLAGE_GIVES_HANDLE(curandCreateGenerator)
ULLAGE_TAKES_HANDLE(cusolverDnDestroy)
ULLAGE_TAKES_HANDLE(cusolverDnDestroyParams)
ULLAGE_TAKES_HANDLE(cusolverDnDestroyGesvdjInfo)
ULLAGE_TAKES_HANDLE(cusolverDnDestroySyevjInfo)
ULLAGE_TAKES_HANDLE(cusparseDestroy)
ULLAGE_TAKES_HANDLE(cusparseDestroyMatDescr)
ULLAGE_TAKES_HANDLE(cusparseDestroySpMat)
ULLAGE_TAKES_HANDLE(cusparseDestroyDnMat)
ULLAGE_TAKES_HANDLE(cusparseDestroyDnVec)
ULLAGE_TAKES_HANDLE(cusparseDestroySpVec)
ULLAGE_TAKES_HANDLE(cusparseDestroyBsrsm2Info)
ULLAGE_TAKES_HANDLE(cusparseDestroyBsrsv2Info)
ULLAGE_TAKES_HANDLE(cusparseSpGEMM_destroyDescr)
ULLAGE_TAKES_HANDLE(cusparseSpSM_destroyDescr)
ULLAGE_TAKES_HANDLE(cusparseSpSV_destroyDescr)
ULLAGE_TAKES_HANDLE(curandDestroyGenerator)

ULLAGE_NO_BYTES(cusparseSpMM_bufferSize, std::size_t, 10)
ULLAGE_NO_BYTES(cusparseSpMV_bufferSize, std::size_t, 9)
ULLAGE_NO_BYTES(cusparseSDDMM_bufferSize, std::size_t, 10)
ULLAGE_NO_BYTES(cusparseSpSV_bufferSize, std::size_t, 9)
ULLAGE_NO_BYTES(cusparseSpSM_bufferSize, std::size_t, 10)
ULLAGE_NO_BYTES(cusparseXcoosort_bufferSizeExt, std::size_t, 6)
ULLAGE_NO_BYTES(cusparseXcsrsort_bufferSizeExt, std::size_t, 6)
ULLAGE_NO_BYTES(cusparseSpGEMM_workEstimation, std::size_t, 11)
ULLAGE_NO_BYTES(cusparseSpGEMM_compute, std::size_t, 11)
ULLAGE_NO_BYTES(cusparseScsrgeam2_bufferSizeExt, std::size_t, 19)
ULLAGE_NO_BYTES(cusparseSbsrsv2_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusparseSbsrsm2_bufferSize, int, 13)
ULLAGE_NO_BYTES(cusparseDcsrgeam2_bufferSizeExt, std::size_t, 19)
ULLAGE_NO_BYTES(cusparseDbsrsv2_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusparseDbsrsm2_bufferSize, int, 13)
ULLAGE_NO_BYTES(cusparseCcsrgeam2_bufferSizeExt, std::size_t, 19)
ULLAGE_NO_BYTES(cusparseCbsrsv2_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusparseCbsrsm2_bufferSize, int, 13)
ULLAGE_NO_BYTES(cusparseZcsrgeam2_bufferSizeExt, std::size_t, 19)
ULLAGE_NO_BYTES(cusparseZbsrsv2_bufferSize, int, 11)
ULLAGE_NO_BYTES(cusparseZbsrsm2_bufferSize, int, 13)
ULLAGE_NO_BYTES(cusparseXcsrgeam2Nnz, int, 13)

#undef ULLAGE_NO_BYTES
#undef ULLAGE_NO_BYTES_TWICE
#undef ULLAGE_GIVES_HANDLE
#undef ULLAGE_TAKES_HANDLE

ULLAGE_CARD_API int cusparseSpMatGetSize(void*, std::int64_t* rows, std::int64_t* columns, std::int64_t* entries) {
  *rows = *columns = *entries = 0;
  return 0;
}
ULLAGE_CARD_API int cusparseXbsrsm2_zeroPivot(void*, void*, int* position) {
  *position = -1;
  return 0;
}
ULLAGE_CARD_API int cusparseXbsrsv2_zeroPivot(void*, void*, int* position) {
  *position = -1;
  return 0;
}
ULLAGE_CARD_API const char* cusparseGetErrorString(int status) { return status == 0 ? "success" : "failed"; }

ULLAGE_CARD_API int cufftCreate(int* plan) {
  static std::atomic<int> next{1};
  *plan = next.fetch_add(1);
  return 0;
}
ULLAGE_CARD_API int cufftDestroy(int) { return 0; }
ULLAGE_CARD_API int cufftXtMakePlanMany(int, int, long long*, long long*, long long, long long, int, long long*,
                                        long long, long long, int, long long, std::size_t* work, int) {
  *work = 0;
  return 0;
}
// The caller allocates the workspace, which has 0 bytes.
ULLAGE_CARD_API int cufftSetAutoAllocation(int, int) { return 0; }
ULLAGE_CARD_API int cufftGetSize(int, std::size_t* work) {
  *work = 0;
  return 0;
}

}  // namespace ullage::drycard
