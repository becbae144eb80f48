// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares the options: names, short names, help. options.cpp checks them together.

#include "program/option_words.h"
#include "vqgan_clip/options.h"

#include <CLI/App.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {

// Option values as given, before they are parsed.
struct OptionWords {
  std::string prompts, image_prompts;
  std::vector<std::int64_t> noise_seeds;
  std::vector<double> noise_weights;
  std::vector<std::string> size = {"256x256"};
  std::string init_noise;
  std::string cut_method = "latest";
  std::vector<std::string> augments = {"Af", "Pe", "Ji", "Er"};
  std::string optimizer = "Adam";
  std::string precision = "fp32";
  std::vector<std::string> allowed;
  std::int64_t seed = 0;
  std::string device = "cpu";
  std::string style_folder;
  // Options of video files, accepted but without effect: video files are not made here.
  bool deterministic = false;
  double video_length = 10, output_fps = 0, input_fps = 15;
};

// `options` and `words` must outlive the app.
void add_options(CLI::App& app, Options& options, OptionWords& words);

std::span<const program::ShortOption> short_options();

}  // namespace ullage::vqgan_clip
