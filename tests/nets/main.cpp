// SPDX-License-Identifier: Apache-2.0
// nets --net NAME --steps N [--seed 1] [--threads 2] [--scale tiny|small|full]
// Trains one net and prints one line of JSON: losses, what the net said, SHA-256 of each part of its state and of all.
// A plain LibTorch program: it is linked to torch and knows nothing of budgets, so that it can judge one kept from
// outside. nets --list prints the names.

#include "training.h"

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

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
  Scale scale = Scale::Small;
  bool list = false;
};

bool read_scale(const std::string& text, Scale& scale) {
  if (text == "tiny") return scale = Scale::Tiny, true;
  if (text == "small") return scale = Scale::Small, true;
  if (text == "full") return scale = Scale::Full, true;
  return false;
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--list") {
      options.list = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    if (word == "--net") {
      options.net = value;
    } else if (word == "--scale") {
      if (!read_scale(value, options.scale)) return false;
    } else {
      const long number = std::strtol(argv[i], nullptr, 10);
      long* const into = word == "--steps"     ? &options.steps
                         : word == "--seed"    ? &options.seed
                         : word == "--threads" ? &options.threads
                                               : nullptr;
      if (into == nullptr || number <= 0) return false;
      *into = number;
    }
  }
  return options.list || !options.net.empty();
}

void train(const MakeTraining& make, const Options& options) {
  at::set_num_threads(static_cast<int>(options.threads));
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  const std::unique_ptr<Training> training = make(options.scale);
  nlohmann::ordered_json json{{"net", options.net}, {"steps", options.steps}, {"losses", nlohmann::json::array()}};
  for (long step = 0; step < options.steps; ++step) json["losses"].push_back(training->step());
  json["said"] = training->said();
  Digest all;
  for (const auto& [name, sha256] : training->digests()) {
    json["parts"][name] = sha256;
    all.add(name + ' ' + sha256 + '\n');
  }
  json["sha256"] = all.finish();
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, MakeTraining> nets;
  add_convolutional(nets);
  add_sequential(nets);
  add_adversarial(nets);
  add_autograd_cases(nets);
  add_storage_cases(nets);
  Options options;
  if (!read_options(argc, argv, options) || (!options.list && !nets.contains(options.net))) {
    std::fprintf(stderr,
                 "usage: nets --net NAME --steps N [--seed N] [--threads N] [--scale tiny|small|full] | --list\n");
    return kWrongUse;
  }
  if (options.list) {
    for (const auto& item : nets) std::printf("%s\n", item.first.c_str());
    return 0;
  }
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
