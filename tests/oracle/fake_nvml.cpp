// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnvidia-ml.so.1 with one device, on which no process runs and which has no fabric. Torch asks it
// before the first expandable segment, where 2.14 calls a null pointer if the library is missing. Torch also asks it
// for the message of an out-of-memory error.

namespace {
constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = nullptr;
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kNotSupported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return kNotSupported; }
int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return kNotSupported; }

}  // extern "C"
