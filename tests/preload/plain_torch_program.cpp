// SPDX-License-Identifier: Apache-2.0
// A small LibTorch program that is linked to nothing of Ullage. It makes twelve tensors of 32 MiB, each from the one
// before, and reads all again from last to first. Prints a checksum of the final bits.

#include <torch/torch.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

const at::Tensor kEarly = at::ones({64, 1024});  // made before main

std::uint64_t checksum(const at::Tensor& tensor) {
  const auto* bits = static_cast<const std::uint32_t*>(tensor.const_data_ptr());
  std::uint64_t sum = 14695981039346656037ull;  // FNV-1a, over words instead of bytes
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
