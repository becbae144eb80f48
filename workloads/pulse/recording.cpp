// SPDX-License-Identifier: Apache-2.0
#include "pulse/recording.h"

#include "torch_program/tensor_file.h"
#include "ullage/read/weights/weights_match.h"
#include "ullage/train/as_tensor.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>

namespace ullage::pulse {
namespace {

std::string noise_name(std::size_t layer) { return "noise/" + std::to_string(layer); }

}  // namespace

Result<Start> read_start(const std::string& path, const Options& options, std::int64_t layers, std::int64_t batch) {
  ULLAGE_TRY_VALUE(auto opened, read::Weights::open(path));
  const auto file = std::make_shared<const read::Weights>(std::move(opened));
  std::vector<read::WantedWeight> wanted = {{"latents", {batch, options.tile_latent ? 1 : layers, kLatent}}};
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::int64_t side = side_of_layer(i);
    wanted.push_back({noise_name(static_cast<std::size_t>(i)), {batch, 1, side, side}});
  }
  ULLAGE_TRY(read::match(*file, wanted, read::ExtraWeights::Allowed));
  Start start;
  start.latents = train::as_tensor(file, wanted[0].name).clone();
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    start.noises.push_back(train::as_tensor(file, wanted[i].name).clone());
  }
  return start;
}

void Recording::see(const Evaluation& seen, const Search& search, double learning_rate) {
  if (rows_.empty()) {
    tensors_["image"] = seen.image;
    tensors_["low"] = seen.low;
    tensors_["gradient/latents"] = search.latents().grad().clone();
    for (const std::size_t i : search.trained_noises()) {
      tensors_["gradient/" + noise_name(i)] = search.noises()[i].grad().clone();
    }
  }
  for (const auto& [term, figure] : seen.loss.terms) rows_[std::string(name_of(term))].push_back(figure);
  rows_["total"].push_back(seen.loss.total);
  rows_["distance"].push_back(seen.distance);
  rows_["latents"].push_back(search.latents().detach().clone());
  rows_["rate"].push_back(at::scalar_tensor(learning_rate, at::kDouble));
}

Status Recording::write(const std::string& path, const Evaluation& last, const Search& search, const BestFaces& best) {
  std::map<std::string, at::Tensor> all = tensors_;
  for (const auto& [name, rows] : rows_) all["trajectory/" + name] = at::stack(rows);
  for (const std::size_t i : search.trained_noises()) all["final/" + noise_name(i)] = search.noises()[i].detach();
  all["final/last"] = last.image;
  std::vector<at::Tensor> images, lows;
  for (std::int64_t i = 0; i < last.image.size(0); ++i) {
    images.push_back(best.of(static_cast<std::size_t>(i)).image);
    lows.push_back(best.of(static_cast<std::size_t>(i)).low);
  }
  all["final/best"] = at::stack(images);
  all["final/best_low"] = at::stack(lows);
  return torch_program::write_tensors(path, all);
}

}  // namespace ullage::pulse
