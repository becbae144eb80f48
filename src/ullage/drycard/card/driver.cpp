// SPDX-License-Identifier: Apache-2.0
// The driver's functions about cards and contexts. Each card has a primary context; a context that a program creates is
// that same one.

#include "ullage/drycard/card/attributes.h"
#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/uuid.h"
#include "ullage/drycard/card/work.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace ullage::drycard {
namespace {

// The cards that were current before each push of this thread, the latest last.
thread_local std::vector<int> pushed;

bool is_card(int ordinal) { return ordinal >= 0 && ordinal < machine().visible; }

Error retain(void** context, int ordinal) {
  if (!is_card(ordinal)) return kInvalidDevice;
  if (const Error error = use_card(ordinal); error != kSuccess) return error;
  *context = context_of(ordinal);
  return kSuccess;
}

Error make_context(void** context, int ordinal) {
  if (const Error error = retain(context, ordinal); error != kSuccess) return error;
  pushed.push_back(current_card());
  return set_current_card(ordinal);
}

// Returns null if this process has not used the thread's current card.
void* current_context() { return uses_card(current_card()) ? context_of(current_card()) : nullptr; }

}  // namespace

ULLAGE_CARD_API int cuInit(unsigned) { return machine().visible == 0 ? kNoDevice : kSuccess; }
ULLAGE_CARD_API int cuDriverGetVersion(int* version) {
  *version = machine().driver_version();
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGetCount(int* count) {
  *count = machine().visible;
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return is_card(ordinal) ? kSuccess : kInvalidDevice;
}
ULLAGE_CARD_API int cuDeviceGetName(char* name, int length, int) {
  const std::string_view product = machine().model.product;
  std::snprintf(name, static_cast<std::size_t>(length), "%.*s", static_cast<int>(product.size()), product.data());
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGetUuid(Uuid* uuid, int ordinal) {
  if (!is_card(ordinal)) return kInvalidDevice;
  *uuid = uuid_of(machine().card_of[ordinal]);
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGetUuid_v2(Uuid* uuid, int ordinal) { return cuDeviceGetUuid(uuid, ordinal); }
ULLAGE_CARD_API int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = machine().model.total;
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGetAttribute(int* value, int attribute, int ordinal) {
  if (!is_card(ordinal)) return kInvalidDevice;
  *value = attribute_of(attribute, ordinal);
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceComputeCapability(int* major, int* minor, int) {
  *major = machine().model.major;
  *minor = machine().model.minor;
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGetPCIBusId(char* text, int length, int ordinal) {
  if (!is_card(ordinal)) return kInvalidDevice;
  std::snprintf(text, static_cast<std::size_t>(length), "%s", bus_text(machine().card_of[ordinal]).c_str());
  return kSuccess;
}
ULLAGE_CARD_API int cuDeviceGetByPCIBusId(int* ordinal, const char* text) {
  const int card = card_at_bus(text);
  for (int i = 0; i < machine().visible; ++i) {
    if (machine().card_of[i] != card) continue;
    *ordinal = i;
    return kSuccess;
  }
  return kInvalidDevice;
}
ULLAGE_CARD_API int cuDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  *can = ordinal != peer ? 1 : 0;
  return kSuccess;
}

ULLAGE_CARD_API int cuDevicePrimaryCtxRetain(void** context, int ordinal) { return retain(context, ordinal); }
ULLAGE_CARD_API int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
ULLAGE_CARD_API int cuDevicePrimaryCtxReset_v2(int) { return kSuccess; }
ULLAGE_CARD_API int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return kSuccess; }
ULLAGE_CARD_API int cuDevicePrimaryCtxGetState(int ordinal, unsigned* flags, int* active) {
  if (!is_card(ordinal)) return kInvalidDevice;
  *flags = 0;
  *active = uses_card(ordinal) ? 1 : 0;
  return kSuccess;
}

ULLAGE_CARD_API int cuCtxCreate_v2(void** context, unsigned, int ordinal) { return make_context(context, ordinal); }
ULLAGE_CARD_API int cuCtxCreate_v3(void** context, void*, int, unsigned, int ordinal) {
  return make_context(context, ordinal);
}
ULLAGE_CARD_API int cuCtxCreate_v4(void** context, void*, unsigned, int ordinal) {
  return make_context(context, ordinal);
}
ULLAGE_CARD_API int cuCtxDestroy_v2(void*) { return kSuccess; }
ULLAGE_CARD_API int cuCtxGetCurrent(void** context) {
  *context = current_context();
  return kSuccess;
}
ULLAGE_CARD_API int cuCtxSetCurrent(void* context) {
  if (context == nullptr) return kSuccess;
  const int ordinal = ordinal_of(context);
  if (ordinal < 0) return kInvalidContext;
  if (const Error error = use_card(ordinal); error != kSuccess) return error;
  return set_current_card(ordinal);
}
ULLAGE_CARD_API int cuCtxPushCurrent_v2(void* context) {
  pushed.push_back(current_card());
  return cuCtxSetCurrent(context);
}
ULLAGE_CARD_API int cuCtxPopCurrent_v2(void** context) {
  if (context != nullptr) *context = current_context();
  if (pushed.empty()) return kSuccess;
  const int before = pushed.back();
  pushed.pop_back();
  return set_current_card(before);
}
ULLAGE_CARD_API int cuCtxPushCurrent(void* context) { return cuCtxPushCurrent_v2(context); }
ULLAGE_CARD_API int cuCtxPopCurrent(void** context) { return cuCtxPopCurrent_v2(context); }
ULLAGE_CARD_API int cuCtxGetDevice(int* ordinal) {
  *ordinal = current_card();
  return current_context() != nullptr ? kSuccess : kInvalidContext;
}
ULLAGE_CARD_API int cuCtxGetDevice_v2(int* ordinal, void* context) {
  *ordinal = context == nullptr ? current_card() : ordinal_of(context);
  return *ordinal >= 0 ? kSuccess : kInvalidContext;
}
// CUDA 13.2's reports of errors: there are none.
ULLAGE_CARD_API int cuLogsRegisterCallback(void*, void*, void** callback) {
  static int one = 0;
  *callback = &one;
  return kSuccess;
}
ULLAGE_CARD_API int cuLogsUnregisterCallback(void*) { return kSuccess; }
ULLAGE_CARD_API int cuCtxGetId(void* context, unsigned long long* id) {
  *id = static_cast<unsigned long long>(ordinal_of(context)) + 1;
  return kSuccess;
}
ULLAGE_CARD_API int cuCtxSynchronize() {
  finish_all();
  return use_current();
}
ULLAGE_CARD_API int cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cuCtxGetApiVersion(void*, unsigned* version) {
  *version = static_cast<unsigned>(machine().driver_version());
  return kSuccess;
}
ULLAGE_CARD_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}
ULLAGE_CARD_API int cuCtxGetLimit(std::size_t* value, int) {
  *value = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cuCtxSetLimit(int, std::size_t) { return kSuccess; }
ULLAGE_CARD_API int cuCtxEnablePeerAccess(void*, unsigned) { return kSuccess; }
ULLAGE_CARD_API int cuCtxDisablePeerAccess(void*) { return kSuccess; }
ULLAGE_CARD_API int cuStreamGetCtx(void*, void** context) {
  *context = context_of(current_card());
  return kSuccess;
}

// Statically linked runtimes ask the driver for private tables. There are none here.
ULLAGE_CARD_API int cuGetExportTable(const void** table, const Uuid*) {
  *table = nullptr;
  return kNotFound;
}

}  // namespace ullage::drycard
