// SPDX-License-Identifier: Apache-2.0
#include "torch_program/run_parts.h"

#include "ullage/runtime/runtime.h"

#include <ATen/Parallel.h>

#include <random>

namespace ullage::torch_program {

std::shared_ptr<void> charge(Bytes bytes, std::string_view what) { return runtime::charge_outside(bytes, what); }

std::uint64_t seed_by_chance() { return std::random_device()() % 1'000'000'000; }

void set_threads(std::int64_t threads) {
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
}

program::Pace pace(Seconds left) {
  const runtime::MemoryStatus memory = runtime::memory_status();
  return {runtime::active(), memory.resident, memory.budget, left};
}

void add(program::Sha256& digest, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  digest.update(whole.const_data_ptr(), Bytes{whole.nbytes()});
}

}  // namespace ullage::torch_program
