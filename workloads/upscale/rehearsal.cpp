// SPDX-License-Identifier: Apache-2.0
#include "upscale/rehearsal.h"

#include "image/picture_list.h"
#include "torch_program/rehearsal.h"
#include "torch_program/run_parts.h"
#include "ullage/runtime/runtime.h"
#include "upscale/output_rows.h"
#include "upscale/picture_upscaler.h"
#include "upscale/tile.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace ullage::upscale {
namespace {

constexpr std::int64_t kTiles = 3;
constexpr std::uint32_t kMadeUpWidth = 256;

// Returns the facts of the widest picture; one whose alpha is computed too counts as twice as wide.
Result<PictureFacts> widest(const Options& options) {
  PictureFacts widest;
  widest.size = {kMadeUpWidth, kMadeUpWidth};
  if (!std::filesystem::exists(options.input)) return widest;
  widest.size = {};
  ULLAGE_TRY_VALUE(const auto pictures, image::list_pictures(options.input));
  for (const std::string& picture : pictures) {
    ULLAGE_TRY_VALUE(const auto facts, look_at(picture, torch_program::charge));
    const auto weight = [](const PictureFacts& one) { return one.size.width * streams_of(one); };
    if (weight(facts) > weight(widest)) widest = facts;
  }
  return widest;
}

// The rows of a tile are a knob too, whose law fails where a convolution's scratch makes the peak.
Choice tile_choice(std::int64_t asked) {
  std::set<std::int64_t> rows = {asked};
  for (std::int64_t one = 1; one <= kMostChosenRows; ++one) rows.insert(one);
  return {"tile", asked, {rows.begin(), rows.end()}};
}

// Begins so far down the picture that every layer has rows of it, and stops before the picture's end.
Status rehearse(const Options& options, PictureFacts facts, std::int64_t rows) {
  ULLAGE_TRY_VALUE(auto file, open_model(options.model, options.scale));
  const at::NoGradGuard no_grad;
  const Network network(file, options.in_double ? at::kDouble : at::kFloat);
  file.weights.reset();
  const std::int64_t fold = network.shape.fold;
  const std::int64_t first = network.shape.lag() / rows + 2;
  facts.size.height = static_cast<std::uint32_t>((first + 2 * kTiles) * rows * fold);
  PictureUpscaler upscaler(network, facts, rows,
                           {[&](const at::Tensor& some, const at::Tensor& alpha) {
                              bytes_of_rows(some, alpha, facts.colour());
                              return success();
                            },
                            [](std::int64_t) {
                              runtime::mark_step();
                              return true;
                            }},
                           first);
  const std::vector<std::uint8_t> row(std::size_t{facts.size.width} * 4, 128);
  for (std::int64_t y = 0; y < kTiles * rows * fold; ++y) upscaler.row(row);
  return success();
}

}  // namespace

Result<bool> rehearse_if_asked(const Options& options, program::Progress& progress) {
  if (!runtime::rehearsing()) return false;
  ULLAGE_TRY_VALUE(const auto facts, widest(options));
  const std::int64_t tile = options.tile > 0 ? options.tile : kUsualRows;
  // A tile with another number of rows rounds differently.
  if (options.tile > 0) runtime::changes_results("--tile " + std::to_string(options.tile), "rounding");
  // Takes have whole folds, and whole parts of a tile at the end, so that all of them run the same ops.
  return torch_program::rehearse({{{"width", facts.size.width}, {"tile", tile}},
                                  {{64, 96, 128}, {8, 12, 16}},
                                  {tile_choice(tile)},
                                  {"loading pictures"}},
                                 options.threads, progress, [&](const std::vector<Knob>& knobs) {
                                   PictureFacts smaller = facts;
                                   smaller.size.width = static_cast<std::uint32_t>(knobs[0].value);
                                   return rehearse(options, smaller, knobs[1].value);
                                 });
}

}  // namespace ullage::upscale
