// SPDX-License-Identifier: Apache-2.0
// nets --net NAME --steps N [--seed 1] [--threads 2] [--scale tiny|small|full] [--batch N] [--side N | --length N]
//      [--losses]
// Trains one net and prints one line of JSON: losses, caught errors, bytes of the C heap in use after the last step,
// SHA-256 of each part of its state and of all parts together. With --losses it computes no SHA-256, so that the
// program does nothing but train. This is a plain LibTorch program that knows nothing of budgets, so tests can judge a
// budget kept from outside by it.
// --batch, --side and --length replace the size that the scale gives. `nets --list` prints the names of the nets.

#include "training.h"
#include "ullage/runtime/ops/vector_math.h"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

using namespace nets;

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

struct Options {
  std::string net;
  long steps = 5;
  long seed = 1;
  long threads = 2;
  Sizes sizes;
  bool list = false;
  bool digest = true;
};

bool read_scale(const std::string& text, Scale& scale) {
  if (text == "tiny") return scale = Scale::Tiny, true;
  if (text == "small") return scale = Scale::Small, true;
  if (text == "full") return scale = Scale::Full, true;
  return false;
}

std::optional<std::int64_t>* size_called(const std::string& option, Sizes& sizes) {
  return option == "--batch"    ? &sizes.batch
         : option == "--side"   ? &sizes.side
         : option == "--length" ? &sizes.length
                                : nullptr;
}

// False if a size is given that the net does not use: a test would then believe that it varies something.
bool takes(const Net& net, const Sizes& sizes) {
  const auto fits = [&](const std::optional<std::int64_t>& size, const char* knob) {
    return !size || std::ranges::find(net.knobs, knob) != net.knobs.end();
  };
  return fits(sizes.batch, "batch") && fits(sizes.side, "side") && fits(sizes.length, "length");
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--list") {
      options.list = true;
      continue;
    }
    if (word == "--losses") {
      options.digest = false;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    if (word == "--net") {
      options.net = value;
    } else if (word == "--scale") {
      if (!read_scale(value, options.sizes.scale)) return false;
    } else {
      const long number = std::strtol(argv[i], nullptr, 10);
      long* const into = word == "--steps"     ? &options.steps
                         : word == "--seed"    ? &options.seed
                         : word == "--threads" ? &options.threads
                                               : nullptr;
      auto* const size = size_called(word, options.sizes);
      if (number <= 0 || (into == nullptr && size == nullptr)) return false;
      if (into != nullptr) *into = number;
      if (size != nullptr) *size = number;
    }
  }
  return options.list || !options.net.empty();
}

void add_digests(const Training& training, nlohmann::ordered_json& json) {
  Digest all;
  for (const auto& [name, sha256] : training.digests()) {
    json["parts"][name] = sha256;
    all.add(name + ' ' + sha256 + '\n');
  }
  json["sha256"] = all.finish();
}

// Tensors are not among them if they are in the pool of `ullage run`.
std::size_t heap_in_use() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

void train(const Net& net, const Options& options) {
  at::set_num_threads(static_cast<int>(options.threads));
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  const std::unique_ptr<Training> training = net.make(options.sizes);
  nlohmann::ordered_json json{{"net", options.net}, {"steps", options.steps}, {"losses", nlohmann::json::array()}};
  for (long step = 0; step < options.steps; ++step) json["losses"].push_back(training->step());
  json["heap_bytes"] = heap_in_use();
  json["said"] = training->said();
  if (options.digest) add_digests(*training, json);
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Nets nets;
  add_convolutional(nets);
  add_sequential(nets);
  add_adversarial(nets);
  add_autograd_cases(nets);
  add_storage_cases(nets);
  add_changing(nets);
  Options options;
  if (!read_options(argc, argv, options) || (!options.list && !nets.contains(options.net))) {
    std::fprintf(stderr,
                 "usage: nets --net NAME --steps N [--seed N] [--threads N] [--scale tiny|small|full] [--batch N] "
                 "[--side N | --length N] [--losses] | --list\n");
    return kWrongUse;
  }
  if (!options.list && !takes(nets.at(options.net), options.sizes)) {
    std::fprintf(stderr, "nets: the size of %s that was asked for is not one of its:", options.net.c_str());
    for (const std::string& knob : nets.at(options.net).knobs) std::fprintf(stderr, " --%s", knob.c_str());
    std::fprintf(stderr, nets.at(options.net).knobs.empty() ? " it has none\n" : "\n");
    return kWrongUse;
  }
  if (options.list) {
    for (const auto& item : nets) std::printf("%s\n", item.first.c_str());
    return 0;
  }
  ullage::runtime::prepare_vector_math();  // without it two plain runs now and then differ in bits
  try {
    train(nets.at(options.net), options);
    return 0;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "nets: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nets: %s\n", error.what());
  }
  return kFailed;
}
