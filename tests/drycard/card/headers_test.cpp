// SPDX-License-Identifier: Apache-2.0
// Compares our own types with CUDA's headers, if they are installed. Nothing runs: the checks are made by the
// compiler.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/device_properties.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace ullage::drycard {
namespace {

#if CUDART_VERSION >= 13000
using Properties = DeviceProperties13;
static_assert(sizeof(cudaPointerAttributes) == kPointerAttributes13);
#else
using Properties = DeviceProperties12;
static_assert(sizeof(cudaPointerAttributes) == sizeof(PointerAttributes));
static_assert(offsetof(cudaDeviceProp, hostRegisterSupported) == kDeviceProperties11);
#endif

#define SAME(field) static_assert(offsetof(cudaDeviceProp, field) == offsetof(Properties, field))
static_assert(sizeof(cudaDeviceProp) == sizeof(Properties));
SAME(name);
SAME(uuid);
SAME(luid);
SAME(luidDeviceNodeMask);
SAME(totalGlobalMem);
SAME(sharedMemPerBlock);
SAME(regsPerBlock);
SAME(warpSize);
SAME(memPitch);
SAME(maxThreadsPerBlock);
SAME(maxThreadsDim);
SAME(maxGridSize);
SAME(totalConstMem);
SAME(major);
SAME(minor);
SAME(textureAlignment);
SAME(texturePitchAlignment);
SAME(multiProcessorCount);
SAME(integrated);
SAME(canMapHostMemory);
SAME(maxTexture1D);
SAME(maxTexture1DMipmap);
SAME(maxTexture2D);
SAME(maxTexture2DMipmap);
SAME(maxTexture2DLinear);
SAME(maxTexture2DGather);
SAME(maxTexture3D);
SAME(maxTexture3DAlt);
SAME(maxTextureCubemap);
SAME(maxTexture1DLayered);
SAME(maxTexture2DLayered);
SAME(maxTextureCubemapLayered);
SAME(maxSurface1D);
SAME(maxSurface2D);
SAME(maxSurface3D);
SAME(maxSurface1DLayered);
SAME(maxSurface2DLayered);
SAME(maxSurfaceCubemap);
SAME(maxSurfaceCubemapLayered);
SAME(surfaceAlignment);
SAME(concurrentKernels);
SAME(ECCEnabled);
SAME(pciBusID);
SAME(pciDeviceID);
SAME(pciDomainID);
SAME(tccDriver);
SAME(asyncEngineCount);
SAME(unifiedAddressing);
SAME(memoryBusWidth);
SAME(l2CacheSize);
SAME(persistingL2CacheMaxSize);
SAME(maxThreadsPerMultiProcessor);
SAME(streamPrioritiesSupported);
SAME(globalL1CacheSupported);
SAME(localL1CacheSupported);
SAME(sharedMemPerMultiprocessor);
SAME(regsPerMultiprocessor);
SAME(managedMemory);
SAME(isMultiGpuBoard);
SAME(multiGpuBoardGroupID);
SAME(hostNativeAtomicSupported);
SAME(pageableMemoryAccess);
SAME(concurrentManagedAccess);
SAME(computePreemptionSupported);
SAME(canUseHostPointerForRegisteredMem);
SAME(cooperativeLaunch);
SAME(sharedMemPerBlockOptin);
SAME(pageableMemoryAccessUsesHostPageTables);
SAME(directManagedMemAccessFromHost);
SAME(maxBlocksPerMultiProcessor);
SAME(accessPolicyMaxWindowSize);
SAME(reservedSharedMemPerBlock);
SAME(hostRegisterSupported);
SAME(sparseCudaArraySupported);
SAME(hostRegisterReadOnlySupported);
SAME(timelineSemaphoreInteropSupported);
SAME(memoryPoolsSupported);
SAME(gpuDirectRDMASupported);
SAME(gpuDirectRDMAFlushWritesOptions);
SAME(gpuDirectRDMAWritesOrdering);
SAME(memoryPoolSupportedHandleTypes);
SAME(deferredMappingCudaArraySupported);
SAME(ipcEventSupported);
SAME(clusterLaunch);
SAME(unifiedFunctionPointers);
#undef SAME

static_assert(sizeof(cudaFuncAttributes) == sizeof(FunctionAttributes));
static_assert(offsetof(cudaFuncAttributes, maxDynamicSharedSizeBytes) ==
              offsetof(FunctionAttributes, most_dynamic_shared));
static_assert(offsetof(cudaFuncAttributes, nonPortableClusterSizeAllowed) ==
              offsetof(FunctionAttributes, non_portable_cluster));
static_assert(offsetof(cudaMemPoolProps, location) == offsetof(PoolProperties, location));
static_assert(sizeof(CUmemAllocationProp) == sizeof(AllocationProperties));
static_assert(offsetof(CUmemAllocationProp, location) == offsetof(AllocationProperties, location));
static_assert(sizeof(CUmemAccessDesc) == sizeof(AccessDescription));
static_assert(sizeof(cudaMemLocation) == sizeof(Location));
static_assert(offsetof(cudaLaunchConfig_t, stream) == offsetof(LaunchConfig, stream));
static_assert(offsetof(CUlaunchConfig, hStream) == offsetof(LaunchConfig, stream));
static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(IpcHandle));
static_assert(sizeof(dim3) == sizeof(Dim3));
static_assert(int{cudaErrorMemoryAllocation} == kOutOfMemory && int{CUDA_ERROR_OUT_OF_MEMORY} == kOutOfMemory);
static_assert(int{cudaErrorInitializationError} == kNotInitialized && int{cudaErrorNoDevice} == kNoDevice);
static_assert(int{cudaErrorInvalidResourceHandle} == kInvalidHandle && int{cudaErrorNotReady} == kNotReady);
static_assert(int{cudaErrorPeerAccessAlreadyEnabled} == kPeerAlreadyEnabled);
static_assert(int{cudaErrorNotSupported} == kNotSupported && int{CUDA_ERROR_NOT_SUPPORTED} == kNotSupported);
static_assert(int{cudaMemoryTypeDevice} == kDevice && int{cudaMemoryTypeManaged} == kManaged);

TEST(DryCardHeaders, AgreeWithOurTypes) { SUCCEED() << "CUDA " << CUDART_VERSION; }

}  // namespace
}  // namespace ullage::drycard
