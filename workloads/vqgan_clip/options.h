// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of ullage-vqgan-clip, with the names and defaults of the published generate.py, checked before any work
// begins. "-ii", "--init_image" and "--init-image" are the same option.

#include "program/answer.h"
#include "program/optimizer_kind.h"
#include "program/precision.h"
#include "vqgan_clip/picture_size.h"
#include "vqgan_clip/prompts.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ullage::vqgan_clip {

enum class InitNoise { None, Pixels, Gradient };
enum class CutMethod { Latest, Original, Updated, NrUpdated, UpdatedPooling };
using program::OptimizerKind;
// kornia's ColorJitter, RandomSharpness, RandomGaussianNoise, RandomPerspective, RandomRotation, RandomAffine,
// RandomElasticTransform, RandomThinPlateSpline, RandomCrop, RandomErasing, RandomResizedCrop.
enum class Augment { Ji, Sh, Gn, Pe, Ro, Af, Et, Ts, Cr, Er, Re };

// Work that can be done in pieces. That needs less memory but rounds differently, so the person must allow each by
// name.
enum class Lever { CutChunks, CodeRows, AttentionRows };

// A random direction in CLIP's space to search towards.
struct NoisePrompt {
  std::int64_t seed = 0;
  double weight = 0;

  friend bool operator==(const NoisePrompt&, const NoisePrompt&) = default;
};

struct Options {
  std::vector<Phrase> story;  // phrases of text prompts; one if there is no '^', none if there are no texts
  Phrase image_prompts;
  std::vector<NoisePrompt> noise_prompts;
  std::int64_t iterations = 500;  // counted from 0 and inclusive: 501 pictures
  std::int64_t save_every = 50;
  PictureSize size = {256, 256};  // as asked for; used_size() rounds it
  std::string init_image;         // empty: random codes
  InitNoise init_noise = InitNoise::None;
  double init_weight = 0;
  std::string clip = "ViT-B/32";  // a name of a published file, or a path
  std::string config = "checkpoints/vqgan_imagenet_f16_16384.yaml";
  std::string checkpoint = "checkpoints/vqgan_imagenet_f16_16384.ckpt";
  std::string vocabulary = "bpe_simple_vocab_16e6.txt.gz";
  double learning_rate = 0.1;
  CutMethod cut_method = CutMethod::Latest;
  std::int64_t cuts = 32;
  double cut_power = 1;
  std::vector<Augment> augments = {Augment::Af, Augment::Pe, Augment::Ji, Augment::Er};  // in this order
  OptimizerKind optimizer = OptimizerKind::Adam;
  program::Precision precision = program::Precision::Fp32;  // of the layers of the decoder and of CLIP's image tower
  std::optional<std::uint64_t> seed;                        // none: random, and printed
  std::string out = "output.png";
  bool video = false;
  bool zoom_video = false;
  std::int64_t zoom_start = 0;
  std::int64_t zoom_save_every = 10;
  double zoom_scale = 0.99;
  std::int64_t zoom_shift_x = 0;  // pixels
  std::int64_t zoom_shift_y = 0;
  std::int64_t change_prompt_every = 0;  // 0: there is one phrase
  std::vector<Lever> allowed;
  std::int64_t threads = 0;  // 0: torch's own choice
  bool quiet = false;
  // For tests.
  bool in_double = false;
  std::string dump;

  bool allows(Lever lever) const;
  // "--allow cut-chunks code-rows"; "" if nothing is allowed.
  std::string allowed_text() const;
};

std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv);

}  // namespace ullage::vqgan_clip
