// SPDX-License-Identifier: Apache-2.0
#pragma once

// What NVML, the library behind nvidia-smi, says of one card: how much of it each process holds, which the driver's own
// interface does not say. Looked up where the process runs and never linked.

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
    // As the asking process would see it; older drivers give the host's, whoever asks.
    std::uint32_t pid;
    // All allocators, contexts and kernels; managed memory is left out. Nothing: NVML does not know (WSL).
    std::optional<Bytes> used;
  };

  // Of the card at that PCI bus (Driver::bus_id()); some 100 ms. NotFound: no such library. BadArgument: it is too old.
  // System: it has no such card, or does not let this process ask.
  static Result<std::unique_ptr<Nvml>> open(const std::string& bus_id, const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Of the whole card, with what the driver keeps for itself and does not count as its total.
  Result<Bytes> total();
  // Those with a context on the card; in a container one may come several times. Takes milliseconds, and other threads'
  // calls of the driver wait meanwhile.
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
