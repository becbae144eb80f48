// SPDX-License-Identifier: Apache-2.0
// NVML. Its answers agree with the runtime's. It shows all cards of the machine, whatever CUDA_VISIBLE_DEVICES says,
// and nothing here makes a context.

#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/uuid.h"

#include <cstdio>
#include <cstring>
#include <string>

namespace ullage::drycard {
namespace {

// nvmlReturn_t
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInvalidArgument = 2;
constexpr int kNvmlNotSupported = 3;
constexpr int kNvmlNotFound = 6;
constexpr int kNvmlTooSmall = 7;

struct MemoryInfo {
  unsigned long long total, free, used;
};
struct MemoryInfo2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct PciInfo {
  char legacy_text[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char text[32];
};
struct FabricInfo {  // nvmlGpuFabricInfoV_t
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;  // 0: not supported
  unsigned health;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

void* handle_of(int card) { return reinterpret_cast<void*>(Address{0x4e560000} + static_cast<Address>(card + 1) * 16); }

// Returns -1 if it is not one of our handles.
int card_of(const void* handle) {
  for (int i = 0; i < machine().cards; ++i) {
    if (handle_of(i) == handle) return i;
  }
  return -1;
}

int put_handle(void** handle, int card) {
  if (card < 0 || card >= machine().cards) return kNvmlNotFound;
  *handle = handle_of(card);
  return kNvmlSuccess;
}

int put_text(char* text, unsigned length, const std::string& what) {
  if (length <= what.size()) return kNvmlTooSmall;
  std::memcpy(text, what.c_str(), what.size() + 1);
  return kNvmlSuccess;
}

MemoryInfo memory_of(int card) {
  const unsigned long long total = machine().model.total;
  const unsigned long long used = taken_bytes(card);
  return {total, total > used ? total - used : 0, used};
}

// Lists the processes on a card that the ledger knows, which are those of this program.
int list_processes(const void* handle, unsigned* count, ProcessInfo* processes) {
  const int card = card_of(handle);
  if (card < 0 || count == nullptr) return kNvmlInvalidArgument;
  constexpr unsigned kNone = 0xffffffffU;  // no part of a card (MIG)
  const unsigned room = *count;
  *count = 0;
  const auto at = static_cast<std::size_t>(card);
  taken_bytes(card);  // frees the slots of processes that are gone
  for (const LedgerProcess& slot : ledger().process) {
    if (slot.pid.load() == 0 || slot.context[at].load() == 0) continue;
    if (*count < room && processes != nullptr) {
      processes[*count] = {static_cast<unsigned>(slot.pid.load()), slot.used[at].load() + slot.context[at].load(),
                           kNone, kNone};
    }
    ++*count;
  }
  return *count > room ? kNvmlTooSmall : kNvmlSuccess;
}

int put_pci(PciInfo* info, int card) {
  std::memset(info, 0, sizeof *info);
  info->bus = static_cast<unsigned>(bus_of(card));
  info->pci_device = static_cast<unsigned>(machine().model.pci_device) << 16 | 0x10deU;
  std::snprintf(info->legacy_text, sizeof info->legacy_text, "%s", bus_text(card).c_str());
  std::snprintf(info->text, sizeof info->text, "0000%s", bus_text(card).c_str());
  return kNvmlSuccess;
}

}  // namespace

ULLAGE_CARD_API int nvmlInit() { return kNvmlSuccess; }
ULLAGE_CARD_API int nvmlInit_v2() { return kNvmlSuccess; }
ULLAGE_CARD_API int nvmlInitWithFlags(unsigned) { return kNvmlSuccess; }
ULLAGE_CARD_API int nvmlShutdown() { return kNvmlSuccess; }
ULLAGE_CARD_API const char* nvmlErrorString(int error) {
  switch (error) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case kNvmlNotSupported:
      return "Not Supported";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlTooSmall:
      return "Insufficient Size";
    default:
      return "Unknown Error";
  }
}
ULLAGE_CARD_API int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return put_text(text, length, machine().cuda >= 13 ? "580.95.05" : "575.57.08");
}
ULLAGE_CARD_API int nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  return put_text(text, length, machine().cuda >= 13 ? "13.580.95.05" : "12.575.57.08");
}
ULLAGE_CARD_API int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = machine().driver_version();
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlSystemGetCudaDriverVersion_v2(int* version) { return nvmlSystemGetCudaDriverVersion(version); }

ULLAGE_CARD_API int nvmlDeviceGetCount(unsigned* count) {
  *count = static_cast<unsigned>(machine().cards);
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetCount_v2(unsigned* count) { return nvmlDeviceGetCount(count); }
ULLAGE_CARD_API int nvmlDeviceGetHandleByIndex(unsigned index, void** handle) {
  return put_handle(handle, static_cast<int>(index)) == kNvmlSuccess ? kNvmlSuccess : kNvmlInvalidArgument;
}
ULLAGE_CARD_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  return nvmlDeviceGetHandleByIndex(index, handle);
}
ULLAGE_CARD_API int nvmlDeviceGetHandleByPciBusId(const char* text, void** handle) {
  return put_handle(handle, card_at_bus(text));
}
ULLAGE_CARD_API int nvmlDeviceGetHandleByPciBusId_v2(const char* text, void** handle) {
  return put_handle(handle, card_at_bus(text));
}
ULLAGE_CARD_API int nvmlDeviceGetHandleByUUID(const char* text, void** handle) {
  for (int i = 0; i < machine().cards; ++i) {
    if (uuid_text(i) == text) return put_handle(handle, i);
  }
  return kNvmlNotFound;
}
ULLAGE_CARD_API int nvmlDeviceGetIndex(void* handle, unsigned* index) {
  *index = static_cast<unsigned>(card_of(handle));
  return card_of(handle) < 0 ? kNvmlInvalidArgument : kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetMinorNumber(void* handle, unsigned* index) {
  return nvmlDeviceGetIndex(handle, index);
}
ULLAGE_CARD_API int nvmlDeviceGetName(void*, char* text, unsigned length) {
  return put_text(text, length, std::string(machine().model.product));
}
ULLAGE_CARD_API int nvmlDeviceGetUUID(void* handle, char* text, unsigned length) {
  return card_of(handle) < 0 ? kNvmlInvalidArgument : put_text(text, length, uuid_text(card_of(handle)));
}
ULLAGE_CARD_API int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  return card_of(handle) < 0 ? kNvmlInvalidArgument : put_pci(info, card_of(handle));
}
ULLAGE_CARD_API int nvmlDeviceGetMemoryInfo(void* handle, MemoryInfo* memory) {
  if (card_of(handle) < 0) return kNvmlInvalidArgument;
  *memory = memory_of(card_of(handle));
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryInfo2* memory) {
  if (card_of(handle) < 0) return kNvmlInvalidArgument;
  const MemoryInfo known = memory_of(card_of(handle));
  *memory = {memory->version, known.total, 0, known.free, known.used};
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetUtilizationRates(void*, Utilization* rates) {
  *rates = {0, 0};
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = machine().model.major;
  *minor = machine().model.minor;
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count, ProcessInfo* processes) {
  return list_processes(handle, count, processes);
}
ULLAGE_CARD_API int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, ProcessInfo* processes) {
  return list_processes(handle, count, processes);
}
ULLAGE_CARD_API int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, ProcessInfo* processes) {
  return list_processes(handle, count, processes);
}
ULLAGE_CARD_API int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count, ProcessInfo*) {
  *count = 0;
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetClockInfo(void*, int kind, unsigned* mhz) {
  constexpr int kMemoryClock = 2;
  *mhz = static_cast<unsigned>((kind == kMemoryClock ? machine().model.memory_clock_khz : machine().model.clock_khz) /
                               1000);
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetMaxClockInfo(void* handle, int kind, unsigned* mhz) {
  return nvmlDeviceGetClockInfo(handle, kind, mhz);
}
ULLAGE_CARD_API int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 30;
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 0;
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetPersistenceMode(void*, int* mode) {
  *mode = 1;
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetMigMode(void*, unsigned*, unsigned*) { return kNvmlNotSupported; }
// torch expects an answer. It says that there is no fabric between machines.
ULLAGE_CARD_API int nvmlDeviceGetGpuFabricInfoV(void*, FabricInfo* info) {
  *info = {info->version, {}, kNvmlNotSupported, 0, 0, 0};
  return kNvmlSuccess;
}
ULLAGE_CARD_API int nvmlDeviceGetNvLinkState(void*, unsigned, int*) { return kNvmlNotSupported; }
ULLAGE_CARD_API int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kNvmlNotSupported; }
ULLAGE_CARD_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, PciInfo*) { return kNvmlNotSupported; }

}  // namespace ullage::drycard
