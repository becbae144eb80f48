// SPDX-License-Identifier: Apache-2.0
// cuDNN's older functions: handles, descriptors and sizes. Every op has one algorithm without a workspace.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/cudnn_library.h"
#include "ullage/drycard/card/handles.h"
#include "ullage/drycard/card/process.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ullage::drycard {
namespace {

struct Performance {  // cudnnConvolutionFwdAlgoPerf_t and its two sisters
  int algorithm;
  int status;
  float milliseconds;
  std::size_t memory;
  int determinism;
  int math_type;
  int reserved[3];
};
static_assert(sizeof(Performance) == 48);

int one_algorithm(int asked, int* returned, Performance* results) {
  *returned = std::min(asked, 1);
  if (*returned == 1) {
    results[0] = {};
    results[0].algorithm = 1;  // 1 is an algorithm in all three enumerations
    results[0].determinism = 1;
  }
  return 0;
}

int no_bytes(std::size_t* size) {
  if (size != nullptr) *size = 0;
  return 0;
}

}  // namespace

// torch refuses to run with an older version than the one that it was built with. Without the real library,
// ULLAGE_DRYCARD_CUDNN states the version. If the variable is not set, the version is the newest that cuDNN 9 can have.
ULLAGE_CARD_API std::size_t cudnnGetVersion() {
  if (const CudnnLibrary* real = cudnn_library()) return real->version();
  const char* text = std::getenv("ULLAGE_DRYCARD_CUDNN");
  const std::size_t version = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
  constexpr std::size_t kNewest = 99999;
  return version != 0 ? version : kNewest;
}
ULLAGE_CARD_API std::size_t cudnnGetCudartVersion() { return static_cast<std::size_t>(machine().version); }
ULLAGE_CARD_API int cudnnGetProperty(int kind, int* value) {
  const auto version = static_cast<int>(cudnnGetVersion());
  const int major = version < 10000 ? 1000 : 10000;  // 8902 is 8.9.2, and 92000 is 9.20.0
  *value = kind == 0 ? version / major : kind == 1 ? version % major / 100 : version % 100;
  return 0;
}
ULLAGE_CARD_API const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
ULLAGE_CARD_API void cudnnGetLastErrorString(char* text, std::size_t length) {
  if (length > 0) text[0] = '\0';
}
ULLAGE_CARD_API int cudnnCreate(void** handle) {
  constexpr int kNotInitializedStatus = 1001;  // CUDNN_STATUS_NOT_INITIALIZED
  return use_current() == kSuccess ? give_handle(handle) : kNotInitializedStatus;
}
ULLAGE_CARD_API int cudnnDestroy(void* handle) { return take_handle(handle); }
ULLAGE_CARD_API int cudnnSetStream(void* handle, void* stream) {
  handle_from(handle)->stream = stream;
  return 0;
}
ULLAGE_CARD_API int cudnnGetStream(void* handle, void** stream) {
  *stream = handle_from(handle)->stream;
  return 0;
}

#define ULLAGE_CUDNN_DESCRIPTOR(kind)                                                                      \
  ULLAGE_CARD_API int cudnnCreate##kind##Descriptor(void** descriptor) { return give_handle(descriptor); } \
  ULLAGE_CARD_API int cudnnDestroy##kind##Descriptor(void* descriptor) { return take_handle(descriptor); }
ULLAGE_CUDNN_DESCRIPTOR(Activation)
ULLAGE_CUDNN_DESCRIPTOR(CTCLoss)
ULLAGE_CUDNN_DESCRIPTOR(Convolution)
ULLAGE_CUDNN_DESCRIPTOR(Dropout)
ULLAGE_CUDNN_DESCRIPTOR(LRN)
ULLAGE_CUDNN_DESCRIPTOR(OpTensor)
ULLAGE_CUDNN_DESCRIPTOR(Pooling)
ULLAGE_CUDNN_DESCRIPTOR(RNNData)
ULLAGE_CUDNN_DESCRIPTOR(ReduceTensor)
ULLAGE_CUDNN_DESCRIPTOR(SpatialTransformer)
#undef ULLAGE_CUDNN_DESCRIPTOR

#define ULLAGE_CUDNN_ALGORITHM(name)                                                                                  \
  ULLAGE_CARD_API int cudnnFind##name##AlgorithmEx(void*, void*, void*, void*, void*, void*, void*, void*, int asked, \
                                                   int* returned, Performance* results, void*, std::size_t) {         \
    return one_algorithm(asked, returned, results);                                                                   \
  }                                                                                                                   \
  ULLAGE_CARD_API int cudnnGet##name##Algorithm_v7(void*, void*, void*, void*, void*, int asked, int* returned,       \
                                                   Performance* results) {                                            \
    return one_algorithm(asked, returned, results);                                                                   \
  }                                                                                                                   \
  ULLAGE_CARD_API int cudnnGet##name##WorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* size) {      \
    return no_bytes(size);                                                                                            \
  }
ULLAGE_CUDNN_ALGORITHM(ConvolutionForward)
ULLAGE_CUDNN_ALGORITHM(ConvolutionBackwardData)
ULLAGE_CUDNN_ALGORITHM(ConvolutionBackwardFilter)
#undef ULLAGE_CUDNN_ALGORITHM

ULLAGE_CARD_API int cudnnDropoutGetStatesSize(void*, std::size_t* size) {
  // One generator of 48 bytes for each thread that the card can hold: an estimate after what real cards asked for.
  const CardModel& card = machine().model;
  *size = std::size_t{48} * static_cast<std::size_t>(card.multiprocessors * card.threads_per_multiprocessor);
  return 0;
}
ULLAGE_CARD_API int cudnnDropoutGetReserveSpaceSize(void*, std::size_t* size) { return no_bytes(size); }

// The position of the size among the arguments differs from function to function.
ULLAGE_CARD_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*,
                                                                             void*, void*, std::size_t* size) {
  return no_bytes(size);
}
ULLAGE_CARD_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*,
                                                                      void*, void*, void*, std::size_t* size) {
  return no_bytes(size);
}
ULLAGE_CARD_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*,
                                                                         std::size_t* size) {
  return no_bytes(size);
}
ULLAGE_CARD_API int cudnnGetCTCLossWorkspaceSize(void*, void*, void*, void*, void*, void*, int, void*,
                                                 std::size_t* size) {
  return no_bytes(size);
}
ULLAGE_CARD_API int cudnnGetCTCLossWorkspaceSize_v8(void*, int, void*, void*, void*, std::size_t* size) {
  return no_bytes(size);
}
ULLAGE_CARD_API int cudnnGetReductionWorkspaceSize(void*, void*, void*, void*, std::size_t* size) {
  return no_bytes(size);
}
ULLAGE_CARD_API int cudnnGetReductionIndicesSize(void*, void*, void*, void*, std::size_t* size) {
  return no_bytes(size);
}

}  // namespace ullage::drycard
