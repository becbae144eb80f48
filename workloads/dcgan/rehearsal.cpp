// SPDX-License-Identifier: Apache-2.0
#include "dcgan/rehearsal.h"

#include "dcgan/batches.h"
#include "dcgan/sample_grid.h"
#include "dcgan/trainer.h"
#include "image/image_folder.h"
#include "torch_program/rehearsal.h"
#include "ullage/runtime/runtime.h"

#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ullage::dcgan {
namespace {

constexpr int kSteps = 2;  // the first makes the optimizers' state; the second is like all later ones
constexpr std::uint64_t kMadeUpPictures = 1024;

// Any bytes will do, because no tensor's size depends on what a picture shows.
LoadPicture make_up(const Options& options) {
  const auto bytes = static_cast<std::size_t>(3 * options.image_size * options.image_size);
  return [bytes](const std::string&) -> Result<std::vector<std::uint8_t>> {
    return std::vector<std::uint8_t>(bytes, 128);
  };
}

Result<std::vector<std::string>> paths_of(const Options& options) {
  std::vector<std::string> paths;
  if (options.data.empty()) {
    paths.assign(std::max<std::uint64_t>(kMadeUpPictures, static_cast<std::uint64_t>(options.batch)), "made up");
    return paths;
  }
  auto folder = image::list_image_folder(options.data);
  if (!folder) return Error{Error::Kind::BadFile, folder.error().message, folder.error().where};
  for (const auto& one : folder->images) paths.push_back(one.path);
  return paths;
}

Status rehearse(const Options& options, std::vector<std::string> paths) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  Trainer trainer(network_shape(options), adam_settings(options), samples_of(options.batch), step_settings(options));
  Batches batches(options, std::move(paths), options.data.empty() ? make_up(options) : load_from_file(options), {});
  for (int i = 0; i < kSteps; ++i) {
    ULLAGE_TRY_VALUE(auto pictures, batches.next(options.batch));
    trainer.step(std::move(pictures));
    runtime::mark_step();
  }
  sample_grid(trainer, options);
  return success();
}

}  // namespace

Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress) {
  if (!runtime::rehearsing()) return false;
  if (options.micro_batch > 0 && options.micro_batch < options.batch) {
    return Error{Error::Kind::BadArgument,
                 "--micro-batch " + std::to_string(options.micro_batch) + " of --batch " +
                     std::to_string(options.batch) + " is not predicted: predict --batch " +
                     std::to_string(options.micro_batch) +
                     " instead; the rest of the batch adds its pictures and noise",
                 ""};
  }
  ULLAGE_TRY_VALUE(const auto paths, paths_of(options));
  return torch_program::rehearse(
      {{{"batch", options.batch}}, {{2, 3, 4}}, {{"image-size", options.image_size, image_sizes()}}, {"checkpoint"}},
      options.threads, progress, [&](const std::vector<Knob>& knobs) {
        Options smaller = options;
        smaller.batch = knobs.front().value;
        return rehearse(smaller, paths);
      });
}

}  // namespace ullage::dcgan
