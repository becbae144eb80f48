// SPDX-License-Identifier: Apache-2.0
#include "pulse/rehearsal.h"

#include "pulse/best_faces.h"
#include "pulse/pictures.h"
#include "torch_program/pixels.h"
#include "pulse/search.h"
#include "pulse/weight_files.h"
#include "torch_program/precision.h"
#include "torch_program/rehearsal.h"
#include "torch_program/run_parts.h"
#include "ullage/runtime/runtime.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace ullage::pulse {
namespace {

constexpr int kSteps = 2;                 // the first makes the optimizer's state; the second is like all later ones
constexpr std::int64_t kMadeUpSide = 32;  // as in the examples of PULSE

// Returns the side of the first picture. Its contents do not matter, because no tensor's size depends on them.
Result<std::int64_t> side_of_pictures(const Options& options, std::int64_t resolution) {
  if (!std::filesystem::exists(options.input)) return std::min(kMadeUpSide, resolution);
  ULLAGE_TRY_VALUE(const auto jobs, list_jobs(options.input, 1, resolution, torch_program::charge));
  return jobs.front().side;
}

// Makes the start in one piece, so that every batch size runs the same ops. A run draws it picture by picture
// (draw_start).
Start some_start(const Options& options, std::int64_t layers, at::ScalarType type) {
  const std::int64_t batch = options.batch_size;
  Start start;
  start.latents = at::ones({batch, options.tile_latent ? 1 : layers, kLatent}, type);
  for (std::int64_t i = 0; i < layers; ++i) {
    start.noises.push_back(at::ones({batch, 1, side_of_layer(i), side_of_layer(i)}, type));
  }
  return start;
}

Status rehearse(const Options& options) {
  ULLAGE_TRY_VALUE(auto files, open_weight_files(options));
  const SynthesisShape shape = *synthesis_shape(*files.synthesis);
  ULLAGE_TRY_VALUE(const auto side, side_of_pictures(options, shape.resolution));
  const at::ScalarType type = options.in_double ? at::kDouble : at::kFloat;
  const Synthesis synthesis(shape, torch_program::Source(std::move(files.synthesis), type, "synthesis"));
  const GaussianFit fit{at::zeros({kLatent}, type), at::ones({kLatent}, type)};
  const at::Tensor wanted = at::full({options.batch_size, 3, side, side}, 0.5, type);

  BestFaces best(options.batch_size, options.eps);
  Search search(synthesis, fit, wanted, some_start(options, shape.layers(), type), options);
  Evaluation seen;
  for (int i = 0; i < kSteps; ++i) {
    seen = {};
    seen = search.step();
    best.see(seen, i);
    runtime::mark_step();
  }
  torch_program::to_picture(seen.image.select(0, 0));
  return success();
}

}  // namespace

Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress) {
  if (!runtime::rehearsing()) return false;
  torch_program::note(options.precision);
  std::vector<std::string> left_out;
  if (!std::filesystem::exists(options.gaussian_fit)) left_out.push_back("gaussian fit");
  return torch_program::rehearse(
      {{{"batch", options.batch_size}}, {{2, 3, 4}}, {program::precision_choice(options.precision)}, left_out},
      options.threads, progress, [&](const std::vector<Knob>& knobs) {
        Options smaller = options;
        smaller.batch_size = knobs.front().value;
        return rehearse(smaller);
      });
}

}  // namespace ullage::pulse
