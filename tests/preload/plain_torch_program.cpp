// SPDX-License-Identifier: Apache-2.0
// A small program on LibTorch, linked to nothing of Ullage and knowing nothing of it: twelve tensors of 32 MiB, each
// made from the one before, all read again from last to first. Prints a checksum of the bits it ends with.

#include <torch/torch.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

const at::Tensor kEarly = at::ones({64, 1024});  // made before main

std::uint64_t checksum(const at::Tensor& tensor) {
  const auto* bits = static_cast<const std::uint32_t*>(tensor.const_data_ptr());
  std::uint64_t sum = 14695981039346656037ull;  // FNV-1a, a word at a time
  for (std::int64_t i = 0; i < tensor.numel(); ++i) sum = (sum ^ bits[i]) * 1099511628211ull;
  return sum;
}

}  // namespace

int main() {
  at::manual_seed(1);
  std::vector<at::Tensor> chain = {at::rand({8, 1024, 1024})};
  while (chain.size() < 12) chain.push_back((chain.back() * 1.5 - 0.25).relu());
  at::Tensor sum = kEarly.sum() + chain.back();
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) sum.add_(*one);
  std::printf("%016" PRIx64 "\n", checksum(sum));
  return 0;
}
