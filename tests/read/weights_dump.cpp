// SPDX-License-Identifier: Apache-2.0
// Prints everything that was read from files of weights, as lines. test_weights_against_torch.py compares them with
// torch. A storage is numbered where it first occurs. The bytes of a tensor are those of a contiguous copy.
#include "ullage/read/weights/weights.h"

#include <array>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace ullage::read {
namespace {

constexpr std::array kFormats = {"legacy", "zip", "torchscript", "safetensors"};  // in the order of WeightsFormat

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

void dump(const Weights& weights) {
  std::cout << "format " << kFormats[std::size_t(weights.format())] << '\n';
  std::map<const std::byte*, std::size_t> storages;
  for (const auto& [name, tensor] : weights.tensors()) {
    const std::size_t storage = storages.try_emplace(tensor.storage.data(), storages.size()).first->second;
    std::vector<std::byte> copy(tensor.bytes().count);
    tensor.copy_to(copy);
    std::cout << name << '|' << torch_name(tensor.dtype) << '|' << to_string(tensor.shape) << '|'
              << to_string(tensor.strides) << '|' << tensor.offset << '|' << storage << '|' << tensor.storage.size()
              << '|' << hex(copy) << '\n';
  }
}

}  // namespace
}  // namespace ullage::read

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const auto weights = ullage::read::Weights::open(words[i]);
    if (!weights) return std::fprintf(stderr, "%s\n", weights.error().text().c_str()), 1;
    ullage::read::dump(*weights);
  }
  return 0;
}
