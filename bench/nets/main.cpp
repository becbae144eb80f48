// SPDX-License-Identifier: Apache-2.0
// bench_nets --net resnet50|densenet121|unet|gpt --steps N [--seed 1] [--threads 2] [--losses]
//            [--batch N] [--side N] [--length N] [--layers N] [--width N]
// Trains one net and prints one line of JSON: seconds and loss of each step, SHA-256 of each part of the state and of
// all parts. With --losses also prints a line per step as it runs. Like the shipped programs it links Ullage's runtime:
// `ullage run` keeps its budget and plans its steps; without `ullage run` the runtime does nothing.

#include "subjects.h"
#include "ullage/runtime/runtime.h"

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

using namespace bench_nets;

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;
constexpr const char* kUsage =
    "usage: bench_nets --net resnet50|densenet121|unet|gpt --steps N [--seed N] [--threads N] [--losses] [--batch N] "
    "[--side N] [--length N] [--layers N] [--width N]";

struct Options {
  std::string net;
  long steps = 5;
  long seed = 1;
  long threads = 2;
  bool losses = false;
  Sizes sizes;
};

std::map<std::string, Net> all_nets() {
  return {{"resnet50", resnet50()}, {"densenet121", densenet121()}, {"unet", unet()}, {"gpt", gpt()}};
}

std::optional<std::int64_t>* size_called(const std::string& name, Sizes& sizes) {
  return name == "batch"    ? &sizes.batch
         : name == "side"   ? &sizes.side
         : name == "length" ? &sizes.length
         : name == "layers" ? &sizes.layers
         : name == "width"  ? &sizes.width
                            : nullptr;
}

// Reads one option that takes a number. Returns false if there is none of this name or the net does not use it.
bool read_number(const std::string& option, const std::string& value, const Net* net, Options& options) {
  const long number = std::strtol(value.c_str(), nullptr, 10);
  if (number <= 0 || !option.starts_with("--")) return false;
  const std::string name = option.substr(2);
  long* const into = name == "steps"     ? &options.steps
                     : name == "seed"    ? &options.seed
                     : name == "threads" ? &options.threads
                                         : nullptr;
  if (into != nullptr) return *into = number, true;
  auto* const size = size_called(name, options.sizes);
  if (size == nullptr || net == nullptr || std::ranges::find(net->knobs, name) == net->knobs.end()) return false;
  return *size = number, true;
}

// --net must come before the net's sizes.
bool read_options(int argc, char** argv, const std::map<std::string, Net>& nets, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--losses") {
      options.losses = true;
      continue;
    }
    if (++i == argc) return false;
    const auto found = nets.find(options.net);
    if (word == "--net") {
      options.net = argv[i];
    } else if (!read_number(word, argv[i], found == nets.end() ? nullptr : &found->second, options)) {
      return false;
    }
  }
  return nets.contains(options.net);
}

void name_parameters(const nn::Module& model) {
  for (const auto& item : model.named_parameters())
    ullage::runtime::name_parameter(item.value().const_data_ptr(), item.key());
}

void add_digests(const Training& training, nlohmann::ordered_json& json) {
  nets::Digest all;
  for (const auto& [name, sha256] : training.digests()) {
    json["parts"][name] = sha256;
    all.add(name + ' ' + sha256 + '\n');
  }
  const std::string sha256 = all.finish();
  json["sha256"] = sha256;
  ullage::runtime::report_state(sha256);
}

void train(const Net& net, const Options& options) {
  at::set_num_threads(static_cast<int>(options.threads));
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  const Subject subject = net.make(options.sizes);
  name_parameters(*subject.model);
  nlohmann::ordered_json json{{"net", options.net},
                              {"steps", options.steps},
                              {"step_seconds", nlohmann::json::array()},
                              {"losses", nlohmann::json::array()}};
  for (long step = 1; step <= options.steps; ++step) {
    const auto began = std::chrono::steady_clock::now();
    const double loss = subject.training->step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    ullage::runtime::mark_step();
    json["losses"].push_back(loss);
    json["step_seconds"].push_back(took.count());
    if (options.losses) std::printf("step %ld  loss %.9g  %.3f s\n", step, loss, took.count());
    std::fflush(stdout);
  }
  add_digests(*subject.training, json);
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Net> nets = all_nets();
  Options options;
  if (!read_options(argc, argv, nets, options)) {
    std::fprintf(stderr, "%s\n", kUsage);
    return kWrongUse;
  }
  try {
    train(nets.at(options.net), options);
    return 0;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "bench_nets: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_nets: %s\n", error.what());
  }
  return kFailed;
}
