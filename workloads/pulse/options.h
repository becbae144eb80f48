// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of ullage-pulse, with the names and defaults of the published run.py, checked before any work begins.
// "-input_dir", "--input_dir" and "--input-dir" are the same option.

#include "program/answer.h"
#include "program/optimizer_kind.h"
#include "program/precision.h"
#include "pulse/loss_grammar.h"
#include "pulse/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ullage::pulse {

enum class NoiseType { Zero, Fixed, Trainable };
using program::OptimizerKind;

struct Options {
  std::string input = "input";  // a picture, or a folder of them
  std::string out = "runs";
  std::string cache = "cache";  // searched for weights that are not named
  std::string synthesis;
  std::string mapping;
  std::string gaussian_fit = "gaussian_fit.pt";
  std::int64_t steps = 100;
  std::vector<LossPart> loss = {{100, Term::L2}, {0.05, Term::GeoCross}};
  double eps = 2e-3;
  NoiseType noise_type = NoiseType::Trainable;
  std::int64_t trainable_noise_layers = 5;
  std::vector<std::int64_t> bad_noise_layers = {17};  // noises that are zero
  bool tile_latent = false;
  OptimizerKind optimizer = OptimizerKind::Adam;
  double learning_rate = 0.4;
  Schedule schedule = Schedule::OneCycleDrop;
  std::int64_t duplicates = 1;
  std::int64_t batch_size = 1;
  std::optional<std::uint64_t> seed;                        // none: random, and printed
  program::Precision precision = program::Precision::Fp32;  // of the synthesis network's layers
  bool save_intermediate = false;
  bool keep_best = false;
  std::int64_t threads = 0;  // 0: torch's own choice
  bool quiet = false;
  // For tests.
  bool in_double = false;
  std::int64_t fit_samples = 1'000'000;  // as published
  std::string start;
  std::string dump;
};

std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv);

}  // namespace ullage::pulse
