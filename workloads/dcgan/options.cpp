// SPDX-License-Identifier: Apache-2.0
#include "dcgan/options.h"

#include "program/option_words.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::dcgan {
namespace {

constexpr std::int64_t kLeastImage = 16;
constexpr std::int64_t kLargestImage = 4096;  // the generator's first layer then has 32768 channels at 64 features
constexpr std::int64_t kMost = 1'000'000'000;

void add_options(CLI::App& app, Options& o, std::string& precision) {
  app.add_option("--data", o.data, "folder of PNG and JPEG pictures: one folder per class, or flat")->required();
  app.add_option("--out", o.out, "folder for losses.jsonl, samples, checkpoint and run.json")->required();
  app.add_option("--image-size", o.image_size, "side of the pictures in pixels, a power of two")->capture_default_str();
  app.add_option("--batch", o.batch, "pictures in a step")->capture_default_str();
  app.add_option("--steps", o.steps, "end after this many steps");
  app.add_option("--epochs", o.epochs, "end after this many passes over the pictures")->capture_default_str();
  app.add_option("--nz", o.nz, "numbers of noise that a picture is made of")->capture_default_str();
  app.add_option("--ngf", o.ngf, "features of the generator's last layer")->capture_default_str();
  app.add_option("--ndf", o.ndf, "features of the discriminator's first layer")->capture_default_str();
  app.add_option("--max-channels", o.max_channels, "the most channels of a layer");
  app.add_option("--blocks", o.blocks, "standard, or separable: hidden layers with far fewer weights")
      ->capture_default_str();
  app.add_option("--micro-batch", o.micro_batch, "pictures that go through the networks at a time");
  app.add_option("--precision", precision, "type in which layers compute: fp32, bf16 or fp16;\nweights stay in float32")
      ->capture_default_str();
  app.add_option("--allow", o.allow, "batch-norm: statistics of a micro-batch, not of the batch")->expected(1, -1);
  app.add_option("--lr", o.lr, "Adam's learning rate")->capture_default_str();
  app.add_option("--beta1", o.beta1, "Adam's first beta")->capture_default_str();
  app.add_option("--beta2", o.beta2, "Adam's second beta")->capture_default_str();
  app.add_option("--seed", o.seed, "seed of weights, noise and the order of pictures")->capture_default_str();
  app.add_option("--threads", o.threads, "threads of torch (default: torch decides)");
  app.add_option("--sample-every", o.sample_every, "steps between sample pictures; 0: only at the end")
      ->capture_default_str();
  app.add_option("--checkpoint-every", o.checkpoint_every, "steps between checkpoints; 0: only at the end")
      ->capture_default_str();
  app.add_flag("--resume", o.resume, "continue from the checkpoint in --out");
  app.add_flag("--skip-bad", o.skip_bad, "skip pictures that cannot be read");
}

// Returns a message about the first wrong value among the options that make a step smaller, or "".
std::string wrong_way_to_step(const CLI::App& app, const Options& o, bool rehearsal) {
  for (const std::string& name : o.allow) {
    if (name != "batch-norm") return "--allow " + name + " is unknown; only batch-norm can be allowed";
  }
  if (o.blocks != "standard" && o.blocks != "separable")
    return "--blocks " + o.blocks + " is unknown; known are standard and separable";
  if (app.count("--micro-batch") == 0) return "";
  if (o.micro_batch < 1 || o.micro_batch > o.batch) {
    return "--micro-batch " + std::to_string(o.micro_batch) + " of --batch " + std::to_string(o.batch) +
           " is out of range: it must be from 1 to the batch";
  }
  // A rehearsal computes nothing that anyone keeps, and says what the run needs.
  if (o.micro_batch < o.batch && o.allow.empty() && !rehearsal) {
    return "--micro-batch " + std::to_string(o.micro_batch) +
           " changes the results: BatchNorm takes its statistics from " + std::to_string(o.micro_batch) +
           " pictures, not from " + std::to_string(o.batch) + "; add --allow batch-norm if it may";
  }
  return "";
}

// Returns a message about the first wrong value, or "".
std::string first_wrong_value(const CLI::App& app, const Options& o, bool rehearsal) {
  if (o.image_size < kLeastImage || o.image_size > kLargestImage || (o.image_size & (o.image_size - 1)) != 0) {
    return "--image-size " + std::to_string(o.image_size) +
           " is not possible: the networks double from 4 pixels; give 16, 32, 64, 128, 256, 512, 1024, 2048 or 4096";
  }
  const bool steps_given = app.count("--steps") > 0;
  const bool epochs_given = app.count("--epochs") > 0;
  if (steps_given && epochs_given) return "--steps and --epochs both say when to end; give one";
  // A batch of 1 (or a last short batch of 1) is allowed. BatchNorm needs at least two values per channel, and its
  // smallest layer has 4 x 4 values per picture at every allowed image size.
  const program::Bound bounds[] = {{"--batch", o.batch, 1, 1 << 20},
                                   {"--steps", steps_given ? o.steps : 1, 1, kMost},
                                   {"--epochs", o.epochs, 1, kMost},
                                   {"--nz", o.nz, 1, 1 << 20},
                                   {"--ngf", o.ngf, 1, 1 << 16},
                                   {"--ndf", o.ndf, 1, 1 << 16},
                                   {"--max-channels", app.count("--max-channels") > 0 ? o.max_channels : 1, 1, 1 << 20},
                                   {"--seed", o.seed, 0, INT64_MAX},
                                   {"--threads", app.count("--threads") > 0 ? o.threads : 1, 1, 1024},
                                   {"--sample-every", o.sample_every, 0, kMost},
                                   {"--checkpoint-every", o.checkpoint_every, 0, kMost}};
  if (std::string wrong = program::first_outside(bounds); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_way_to_step(app, o, rehearsal); !wrong.empty()) return wrong;
  const auto number = [](double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  };
  if (!std::isfinite(o.lr) || o.lr <= 0) return "--lr " + number(o.lr) + " is out of range: it must be above 0";
  for (const auto& [name, beta] : {std::pair{"--beta1", o.beta1}, std::pair{"--beta2", o.beta2}}) {
    if (!(beta >= 0 && beta < 1)) {
      return std::string(name) + " " + number(beta) + " is out of range: it must be at least 0 and below 1";
    }
  }
  if (!rehearsal && o.data.empty()) return "--data is empty: name a folder of pictures";
  if (!rehearsal && o.out.empty()) return "--out is empty: name a folder";
  return "";
}

}  // namespace

std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv, bool rehearsal) {
  Options options;
  CLI::App app("Trains a DCGAN on a folder of pictures. Under `ullage run` it stays within the bytes it is given.",
               "ullage-dcgan");
  app.get_formatter()->column_width(32);
  app.allow_extras();
  std::string precision(program::word_of(options.precision));
  add_options(app, options, precision);
  for (const char* name : {"--data", "--out"}) app.get_option(name)->required(!rehearsal);
  if (auto answer = program::answer_to(app, [&] { app.parse(argc, argv); })) return *answer;
  const auto known = program::precision_named(precision);
  options.precision = known.value_or(options.precision);
  const std::string wrong = known ? first_wrong_value(app, options, rehearsal) : program::wrong_precision(precision);
  if (!wrong.empty()) return program::wrong_use(app, wrong);
  if (options.steps > 0) options.epochs = 0;
  return options;
}

std::vector<std::int64_t> image_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = kLeastImage; size <= kLargestImage; size *= 2) sizes.push_back(size);
  return sizes;
}

std::map<std::string, std::string> options_that_shape_the_run(const Options& o) {
  const auto text = [](const auto& value) { return nlohmann::json(value).dump(); };
  return {{"--image-size", text(o.image_size)},
          {"--batch", text(o.batch)},
          {"--nz", text(o.nz)},
          {"--ngf", text(o.ngf)},
          {"--ndf", text(o.ndf)},
          {"--max-channels", text(o.max_channels)},
          {"--lr", text(o.lr)},
          {"--beta1", text(o.beta1)},
          {"--beta2", text(o.beta2)},
          {"--seed", text(o.seed)},
          {"--skip-bad", text(o.skip_bad)},
          {"--blocks", o.blocks},
          {"--micro-batch", text(o.micro_batch < o.batch ? o.micro_batch : 0)},
          {"--precision", std::string(program::word_of(o.precision))}};
}

std::string options_as_json(const Options& o) {
  const auto given = [](std::int64_t value) {
    return value == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  const nlohmann::ordered_json json = {{"data", o.data},
                                       {"out", o.out},
                                       {"image_size", o.image_size},
                                       {"batch", o.batch},
                                       {"steps", given(o.steps)},
                                       {"epochs", given(o.epochs)},
                                       {"nz", o.nz},
                                       {"ngf", o.ngf},
                                       {"ndf", o.ndf},
                                       {"max_channels", given(o.max_channels)},
                                       {"blocks", o.blocks},
                                       {"micro_batch", given(o.micro_batch)},
                                       {"precision", program::word_of(o.precision)},
                                       {"allow", o.allow},
                                       {"lr", o.lr},
                                       {"beta1", o.beta1},
                                       {"beta2", o.beta2},
                                       {"seed", o.seed},
                                       {"threads", given(o.threads)},
                                       {"sample_every", o.sample_every},
                                       {"checkpoint_every", o.checkpoint_every},
                                       {"resume", o.resume},
                                       {"skip_bad", o.skip_bad}};
  return json.dump();
}

}  // namespace ullage::dcgan
