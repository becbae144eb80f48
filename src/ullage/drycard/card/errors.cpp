// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA that give the name and the text of an error. Their table has the errors that the dry card (a
// CUDA card that is only pretended) can return. Add a row if a function of the dry card returns another error.

#include "ullage/drycard/card/process.h"

namespace ullage::drycard {
namespace {

struct Words {
  int error;  // CUDA's number; those that only one source file returns have no constant in abi.h
  const char* runtime_name;
  const char* driver_name;
  const char* text;
};

constexpr Words kWords[] = {
    {kSuccess, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoKernelImage, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {kPeerAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {kPeerNotEnabled, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kNotSupported, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
};

const Words* find_words(int error) {
  for (const Words& words : kWords) {
    if (words.error == error) return &words;
  }
  return nullptr;
}

}  // namespace

ULLAGE_CARD_API int cudaGetLastError() { return take_last_error(); }
ULLAGE_CARD_API int cudaPeekAtLastError() { return last_error(); }
ULLAGE_CARD_API const char* cudaGetErrorName(int error) {
  const Words* words = find_words(error);
  return words != nullptr ? words->runtime_name : "cudaErrorUnknown";
}
ULLAGE_CARD_API const char* cudaGetErrorString(int error) {
  const Words* words = find_words(error);
  return words != nullptr ? words->text : "unrecognized error code";
}
ULLAGE_CARD_API int cuGetErrorName(int error, const char** name) {
  const Words* words = find_words(error);
  *name = words != nullptr ? words->driver_name : nullptr;
  return words != nullptr ? kSuccess : kInvalidValue;
}
ULLAGE_CARD_API int cuGetErrorString(int error, const char** text) {
  const Words* words = find_words(error);
  *text = words != nullptr ? words->text : nullptr;
  return words != nullptr ? kSuccess : kInvalidValue;
}

}  // namespace ullage::drycard
