// SPDX-License-Identifier: Apache-2.0
// Writes a file of weights (safetensors) and loads it into a block of 1 x 1 convolutions with the weights 2 and 3.
// Prints what the block makes of 1, then the number of classes that a MobileNetV2 tells apart. argv[1] is the file.
#include <ullage/train/classifiers.h>
#include <ullage/train/state_dict.h>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string header = R"({"depthwise.weight":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[0,4]},)"
                             R"("pointwise.weight":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[4,8]}})";
  const std::uint64_t size = header.size();
  const float weights[] = {2, 3};
  std::ofstream(argv[1], std::ios::binary)
      .write(reinterpret_cast<const char*>(&size), sizeof size)
      .write(header.data(), static_cast<std::streamsize>(size))
      .write(reinterpret_cast<const char*>(weights), sizeof weights);
  ullage::train::SeparableConv2d block(ullage::train::SeparableOptions{1, 1, 1, 1, 0});
  if (const auto done = ullage::train::load_state_dict(*block, argv[1]); !done)
    return std::fprintf(stderr, "%s\n", done.error().text().c_str()), 1;
  const auto scores = ullage::train::mobilenet_v2({.dropout = 0})->forward(torch::randn({2, 3, 32, 32}));
  std::printf("%g %d\n", block->forward(torch::ones({1, 1, 1, 1})).item<double>(), static_cast<int>(scores.size(1)));
  return 0;
}
