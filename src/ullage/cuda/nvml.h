// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks NVML, the library behind nvidia-smi, how much of one card each process holds. The driver's own interface does
// not say that. NVML is looked up at run time and never linked.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/cuda/nvml_abi.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cuda {

// Thread-safe.
class Nvml final {
 public:
  struct Process {
    // In the pid namespace of the process that asks. Older drivers give the pid on the host, whoever asks.
    std::uint32_t pid;
    // Bytes of all allocators, contexts and kernels, without managed memory. Nothing: NVML does not know (WSL).
    std::optional<Bytes> used;
  };

  // Opens NVML for the card at this PCI address (Driver::bus_id()). `library`: its file name, or a path. Takes some
  // 100 ms. NotFound: there is no such library. BadArgument: it lacks a function that is used (too old). System: it
  // does not start, has no such card, or does not let this process ask.
  static Result<std::unique_ptr<Nvml>> open(const std::string& bus_id, const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Bytes of the whole card, including what the driver keeps for itself and leaves out of its own total. System: NVML
  // does not answer.
  Result<Bytes> total();
  // Lists the processes with a context on the card. In a container a process may be listed several times. Takes
  // milliseconds, and other threads' calls of the driver wait meanwhile. System: NVML does not answer.
  Result<std::vector<Process>> processes();

 private:
  struct Functions;

  Nvml() = default;
  Status begin(const std::string& bus_id, const std::string& library);
  Error error(const std::string& what, nvml_abi::Result result) const;

  std::unique_ptr<Functions> call_;
  bool started_ = false;
  nvml_abi::Device device_ = nullptr;
};

}  // namespace ullage::cuda
