// SPDX-License-Identifier: Apache-2.0
#include "stand_in_nvml.h"

#include "stand_in_driver.h"

#include "ullage/cuda/nvml_abi.h"

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace {

using namespace ullage::cuda;
using nvml_abi::kSuccess;

constexpr nvml_abi::Result kUninitialized = 1;
constexpr nvml_abi::Result kInvalid = 2;
constexpr nvml_abi::Result kNotFound = 6;

struct Library {
  std::mutex lock;
  int started = 0;
  std::uint64_t total = 0, questions = 0;
  std::vector<StandInProcess> processes;
  nvml_abi::Result refusal = kSuccess;
  void (*during)(void*) = nullptr;
  void* argument = nullptr;
};

Library& library() {
  static auto* one = new Library;
  return *one;
}

nvml_abi::Device device() { return reinterpret_cast<nvml_abi::Device>(0x30); }

using Guard = std::lock_guard<std::mutex>;

// Call it with the lock held.
nvml_abi::Result refusal() { return library().started == 0 ? kUninitialized : library().refusal; }

}  // namespace

extern "C" {

void stand_in_nvml_reset(std::uint64_t total) {
  Library& l = library();
  const Guard guard(l.lock);
  l.total = total;
  l.questions = 0;
  l.processes.clear();
  l.refusal = kSuccess;
  l.during = nullptr;
}

void stand_in_nvml_list(const StandInProcess* processes, unsigned count) {
  const Guard guard(library().lock);
  library().processes.assign(processes, processes + count);
}

void stand_in_nvml_refuse(int error) {
  const Guard guard(library().lock);
  library().refusal = error;
}

void stand_in_nvml_during(void (*what)(void*), void* argument) {
  const Guard guard(library().lock);
  library().during = what;
  library().argument = argument;
}

std::uint64_t stand_in_nvml_questions() {
  const Guard guard(library().lock);
  return library().questions;
}

int stand_in_nvml_started() {
  const Guard guard(library().lock);
  return library().started;
}

nvml_abi::Result nvmlInit_v2() {
  const Guard guard(library().lock);
  ++library().started;
  return kSuccess;
}

nvml_abi::Result nvmlShutdown() {
  const Guard guard(library().lock);
  if (library().started == 0) return kUninitialized;
  --library().started;
  return kSuccess;
}

const char* nvmlErrorString(nvml_abi::Result error) { return error == 4 ? "Insufficient Permissions" : "refused"; }

nvml_abi::Result nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvml_abi::Device* found) {
  const Guard guard(library().lock);
  if (refusal() != kSuccess) return refusal();
  if (std::strcmp(bus_id, kStandInBusId) != 0) return kNotFound;
  *found = device();
  return kSuccess;
}

nvml_abi::Result nvmlDeviceGetMemoryInfo(nvml_abi::Device of, nvml_abi::Memory* memory) {
  const Guard guard(library().lock);
  if (refusal() != kSuccess) return refusal();
  if (of != device()) return kInvalid;
  *memory = {library().total, library().total, 0};
  return kSuccess;
}

nvml_abi::Result nvmlDeviceGetComputeRunningProcesses_v2(nvml_abi::Device of, unsigned* count,
                                                         nvml_abi::Process* processes) {
  Library& l = library();
  std::unique_lock guard(l.lock);
  if (refusal() != kSuccess) return refusal();
  if (of != device()) return kInvalid;
  ++l.questions;
  const auto [during, argument] = std::pair(l.during, l.argument);
  if (during != nullptr) {
    guard.unlock();
    during(argument);
    guard.lock();
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(l.processes.size());
  if (room < l.processes.size()) return nvml_abi::kTooSmall;
  for (const StandInProcess& one : l.processes) *processes++ = {one.pid, one.used, UINT32_MAX, UINT32_MAX};
  return kSuccess;
}

}  // extern "C"
