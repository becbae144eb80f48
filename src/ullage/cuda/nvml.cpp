// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/nvml.h"

#include "ullage/base/find_symbol.h"

#include <utility>

namespace ullage::cuda {

struct Nvml::Functions {
  nvml_abi::Result (*start)();
  nvml_abi::Result (*end)();
  const char* (*error_string)(nvml_abi::Result error);
  nvml_abi::Result (*device)(const char* bus_id, nvml_abi::Device* device);
  nvml_abi::Result (*memory)(nvml_abi::Device device, nvml_abi::Memory* memory);
  nvml_abi::Result (*processes)(nvml_abi::Device device, unsigned* count, nvml_abi::Process* processes);

  // Looks all functions up. Returns the name of the first that is missing; null if none is.
  const char* find(void* library);
};

const char* Nvml::Functions::find(void* library) {
  SymbolFinder take(library);
  take(start, "nvmlInit_v2");
  take(end, "nvmlShutdown");
  take(error_string, "nvmlErrorString");
  take(device, "nvmlDeviceGetHandleByPciBusId_v2");
  take(memory, "nvmlDeviceGetMemoryInfo");
  // _v3 has the same structure today but is not used: drivers 535.43 to 535.86 write 32 bytes for each process there.
  // Driver 535.98 has no _v3 (github.com/XuehaiPan/nvitop, pull requests 79 and 89).
  take(processes, "nvmlDeviceGetComputeRunningProcesses_v2");
  return take.missing();
}

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& bus_id, const std::string& library) {
  auto nvml = std::unique_ptr<Nvml>(new Nvml);
  ULLAGE_TRY(nvml->begin(bus_id, library));
  return nvml;
}

Status Nvml::begin(const std::string& bus_id, const std::string& library) {
  // The library is never closed, because torch may use it too.
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return Error{Error::Kind::NotFound, "no NVML on this machine: " + std::string(dlerror()), ""};
  auto functions = std::make_unique<Functions>();
  if (const char* missing = functions->find(loaded))
    return Error{Error::Kind::BadArgument, "NVML is too old, it has no " + std::string(missing), library};
  call_ = std::move(functions);
  if (const nvml_abi::Result done = call_->start(); done != nvml_abi::kSuccess)
    return error("NVML does not start", done);
  started_ = true;
  if (const nvml_abi::Result done = call_->device(bus_id.c_str(), &device_); done != nvml_abi::kSuccess)
    return error("NVML has no card at " + bus_id, done);
  return success();
}

// NVML counts its starts, so this ends only our own.
Nvml::~Nvml() {
  if (started_) call_->end();
}

Result<Bytes> Nvml::total() {
  nvml_abi::Memory memory{};
  if (const nvml_abi::Result done = call_->memory(device_, &memory); done != nvml_abi::kSuccess)
    return error("NVML does not report the size of the card", done);
  return Bytes{memory.total};
}

Result<std::vector<Nvml::Process>> Nvml::processes() {
  std::vector<nvml_abi::Process> listed(64);
  auto count = static_cast<unsigned>(listed.size());
  nvml_abi::Result done = call_->processes(device_, &count, listed.data());
  while (done == nvml_abi::kTooSmall && count > listed.size()) {
    listed.resize(count * std::size_t{2});  // more processes may come meanwhile
    count = static_cast<unsigned>(listed.size());
    done = call_->processes(device_, &count, listed.data());
  }
  if (done != nvml_abi::kSuccess) return error("NVML does not list the card's processes", done);
  listed.resize(count);
  std::vector<Process> all;
  for (const nvml_abi::Process& process : listed)
    all.push_back(
        {process.pid, process.used == nvml_abi::kNotAvailable ? std::nullopt : std::optional(Bytes{process.used})});
  return all;
}

Error Nvml::error(const std::string& what, nvml_abi::Result result) const {
  return {Error::Kind::System, what + ": " + call_->error_string(result) + " (" + std::to_string(result) + ")", ""};
}

}  // namespace ullage::cuda
