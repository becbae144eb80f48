// SPDX-License-Identifier: Apache-2.0
// random_program --seed N --ops N --steps N [--threads 2]
// Trains a random net and prints one line of JSON as `nets` does. This is a plain LibTorch program: the only part of
// Ullage in it is a workaround for MKL. It is built a second time with ULLAGE_ON_STAND_IN_CARD, to work on a card
// (tests/card_torch/stand_in_card.h).

#include "random_training.h"
#include "ullage/runtime/ops/vector_math.h"

#ifdef ULLAGE_ON_STAND_IN_CARD
#include "stand_in_card.h"
#endif

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

struct Options {
  long seed = 1, ops = 300, steps = 6, threads = 2;
};

torch::Device device() {
#ifdef ULLAGE_ON_STAND_IN_CARD
  card_torch::install();
  return {torch::kCUDA, 0};
#else
  return torch::kCPU;
#endif
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    long* const into = word == "--seed"      ? &options.seed
                       : word == "--ops"     ? &options.ops
                       : word == "--steps"   ? &options.steps
                       : word == "--threads" ? &options.threads
                                             : nullptr;
    if (into == nullptr) return false;
    *into = std::strtol(argv[i + 1], nullptr, 10);
    if (*into <= 0) return false;
  }
  return argc % 2 == 1;
}

void train(const Options& options) {
  const torch::Device here = device();
  at::set_num_threads(static_cast<int>(options.threads));
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  random_program::RandomTraining training(static_cast<std::uint64_t>(options.seed),
                                          static_cast<std::uint64_t>(options.ops), here);
  nlohmann::ordered_json json{{"losses", nlohmann::json::array()}, {"said", nlohmann::json::array()}};
  for (long step = 0; step < options.steps; ++step) json["losses"].push_back(training.step());
  nets::Digest all;
  for (const auto& [name, sha256] : training.digests()) {
    json["parts"][name] = sha256;
    all.add(name + ' ' + sha256 + '\n');
  }
  json["sha256"] = all.finish();
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fprintf(stderr, "usage: random_program --seed N --ops N --steps N [--threads N]\n");
    return 2;
  }
  ullage::runtime::prepare_vector_math();  // without it two plain runs now and then differ in bits
  try {
    train(options);
    return 0;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "random_program: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_program: %s\n", error.what());
  }
  return 1;
}
