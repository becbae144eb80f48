// SPDX-License-Identifier: Apache-2.0
#include "dcgan/rehearsal.h"

#include "dcgan/batches.h"
#include "dcgan/networks.h"
#include "dcgan/sample_grid.h"
#include "dcgan/trainer.h"
#include "image/image_folder.h"
#include "torch_program/precision.h"
#include "torch_program/rehearsal.h"
#include "ullage/runtime/runtime.h"

#include <torch/utils.h>

#include <algorithm>
#include <set>
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

// The batches of the takes. They have as many micro-batches as the batch asked for, so that all takes run the same ops.
// If the last micro-batch is short, it keeps its size.
class Sizes final {
 public:
  explicit Sizes(const Options& options) : options_(options) {
    if (options.micro_batch <= 0 || options.micro_batch >= options.batch) return;
    last_ = options.batch % options.micro_batch;
    parts_ = options.batch / options.micro_batch;
  }

  std::vector<std::int64_t> usual() const {
    std::vector<std::int64_t> sizes;
    const std::int64_t least = std::max<std::int64_t>(2, last_ + 1);
    for (std::int64_t micro = least; micro < least + 3; ++micro) sizes.push_back(parts_ * micro + last_);
    return sizes;
  }

  Options at(std::int64_t batch) const {
    Options smaller = options_;
    smaller.batch = batch;
    smaller.micro_batch = parts_ == 1 && last_ == 0 ? 0 : (batch - last_) / parts_;
    return smaller;
  }

 private:
  const Options& options_;
  std::int64_t parts_ = 1;  // whole micro-batches
  std::int64_t last_ = 0;   // pictures of the short one; 0: there is none
};

// Standard blocks are preferred. Separable ones take fewer bytes where weights decide, and more where activations do.
Choice blocks_choice(const Options& options) {
  return {"blocks", options.blocks == "standard" ? 2 : 1, {1, 2}, {"separable", "standard"}};
}

// Halves of the batch, the batch itself, and the micro-batch asked for.
Choice micro_batch_choice(const Options& options) {
  const std::int64_t now = options.micro_batch > 0 ? options.micro_batch : options.batch;
  std::set<std::int64_t> values = {now};
  for (std::int64_t value = options.batch; value > 0; value /= 2) values.insert(value);
  return {"micro-batch", now, {values.begin(), values.end()}, {}, "different"};
}

// Offers caps up to the channels of the widest layer; a cap of that many is the same as none.
Choice channels_choice(const Options& options) {
  constexpr std::int64_t kLeast = 64;
  const std::int64_t features = std::max(options.ngf, options.ndf);
  const std::vector<std::int64_t> layers = channels(options.image_size, features, options.max_channels);
  const std::int64_t now = *std::max_element(layers.begin(), layers.end());
  const std::vector<std::int64_t> uncapped = channels(options.image_size, features, 0);
  std::set<std::int64_t> values = {now};
  for (std::int64_t value = *std::max_element(uncapped.begin(), uncapped.end()); value >= kLeast; value /= 2)
    values.insert(value);
  return {"max-channels", now, {values.begin(), values.end()}};
}

std::vector<Choice> choices(const Options& options) {
  return {{"image-size", options.image_size, image_sizes()},
          channels_choice(options),
          blocks_choice(options),
          program::precision_choice(options.precision),
          micro_batch_choice(options)};
}

void note_changes(const Options& options) {
  torch_program::note(options.precision);
  if (options.micro_batch <= 0 || options.micro_batch >= options.batch) return;
  runtime::changes_results("--micro-batch " + std::to_string(options.micro_batch) + " --allow batch-norm", "different");
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
  ULLAGE_TRY_VALUE(const auto paths, paths_of(options));
  const Sizes sizes(options);
  note_changes(options);
  return torch_program::rehearse(
      {{{"batch", options.batch}}, {sizes.usual()}, choices(options), {"checkpoint"}}, options.threads, progress,
      [&](const std::vector<Knob>& knobs) { return rehearse(sizes.at(knobs.front().value), paths); });
}

}  // namespace ullage::dcgan
