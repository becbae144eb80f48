// SPDX-License-Identifier: Apache-2.0
#include "upscale/model_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace ullage::upscale {
namespace {

constexpr std::array<std::string_view, 4> kPrefixes = {"params_ema.", "params.", "", "state_dict."};
constexpr std::int64_t kConvolutions = 15;  // of a block: three dense blocks of five

enum class Layout { Body, Trunk, Model };

std::string number(std::int64_t n) { return std::to_string(n); }

std::string dense_name(Layout layout, std::int64_t block, std::int64_t k) {
  const std::string dense = number(k / 5 + 1), convolution = "conv" + number(k % 5 + 1);
  switch (layout) {
    case Layout::Body:
      return "body." + number(block) + ".rdb" + dense + "." + convolution;
    case Layout::Trunk:
      return "RRDB_trunk." + number(block) + ".RDB" + dense + "." + convolution;
    case Layout::Model:
      return "model.1.sub." + number(block) + ".RDB" + dense + "." + convolution + ".0";
  }
  contract_broken("unknown Layout", __FILE__, __LINE__);
}

std::optional<Layout> layout_of(const read::Weights& weights) {
  for (const Layout one : {Layout::Body, Layout::Trunk, Layout::Model}) {
    if (weights.find(dense_name(one, 0, 0) + ".weight") != nullptr) return one;
  }
  return std::nullopt;
}

std::int64_t count_blocks(const read::Weights& weights, Layout layout) {
  std::int64_t count = 0;
  while (weights.find(dense_name(layout, count, 0) + ".weight") != nullptr) ++count;
  return count;
}

// In the old files a doubling is three entries of a list: resize, convolution, activation. Then come three more; the
// first and the last are convolutions. Returns the doublings.
std::int64_t count_doublings(const read::Weights& weights) {
  constexpr std::int64_t kMost = 8;
  for (std::int64_t n = kMost; n > 0; --n) {
    if (weights.find("model." + number(3 * n + 4) + ".weight") != nullptr) return n;
  }
  return 0;
}

LayerNames names_of(Layout layout, std::int64_t blocks, std::int64_t doublings) {
  LayerNames names;
  if (layout == Layout::Body) {
    names = {"conv_first", "conv_body", "conv_hr", "conv_last", {"conv_up1", "conv_up2"}, {}};
  } else if (layout == Layout::Trunk) {
    names = {"conv_first", "trunk_conv", "HRconv", "conv_last", {"upconv1", "upconv2"}, {}};
  } else {
    names = {"model.0",
             "model.1.sub." + number(blocks),
             "model." + number(3 * doublings + 2),
             "model." + number(3 * doublings + 4),
             {},
             {}};
    for (std::int64_t i = 0; i < doublings; ++i) names.up.push_back("model." + number(3 * i + 3));
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t k = 0; k < kConvolutions; ++k) names.dense.push_back(dense_name(layout, block, k));
  }
  return names;
}

// The networks that people have in files beside these, each known by a key that it alone has.
struct KnownNetwork {
  std::string_view key, name;
};
constexpr KnownNetwork kOthers[] = {
    {"body.1.weight", "an SRVGGNetCompact (realesr-general-x4v3, realesr-animevideov3)"},
    {"layers.0.residual_group.blocks.0.attn.qkv.weight", "a SwinIR"},
    {"body.0.conv1.weight", "an EDSR or an SRResNet"},
    {"head.0.weight", "an EDSR"},
    {"body.0.body.0.weight", "an RCAN or an EDSR"},
    {"conv0.weight", "the discriminator that Real-ESRGAN is trained with"},
    {"features.0.weight", "a discriminator or a classifier of VGG"},
    {"stylegan_decoder.style_conv1.modulated_conv.weight", "a GFPGAN"},
    {"synthesis.b4.const", "a StyleGAN"},
    {"decoder.conv_in.weight", "a VQGAN (ullage-vqgan-clip)"},
    {"visual.conv1.weight", "a CLIP (ullage-vqgan-clip)"},
    {"torgb.weight", "the synthesis network of ullage-pulse"},
};

Error no_rrdb(const read::Weights& whole) {
  std::string what = "not a network of ESRGAN or Real-ESRGAN: ";
  const KnownNetwork* known = nullptr;
  for (const std::string_view prefix : kPrefixes) {
    const auto has = [&](const KnownNetwork& one) {
      return whole.find(std::string(prefix) + std::string(one.key)) != nullptr;
    };
    if (known == nullptr) {
      const auto* found = std::find_if(std::begin(kOthers), std::end(kOthers), has);
      if (found != std::end(kOthers)) known = found;
    }
  }
  what += known != nullptr ? "this is " + std::string(known->name) : read::beginnings_of(whole);
  return {Error::Kind::BadFile,
          what +
              "; known are the RRDB networks of ESRGAN and Real-ESRGAN, x4 and x2 (RealESRGAN_x4plus, "
              "RealESRGAN_x2plus, RealESRGAN_x4plus_anime_6B, RRDB_ESRGAN_x4)",
          whole.file()};
}

// Extents of a weight; zeros if it is missing or no convolution.
std::array<std::int64_t, 2> channels_of(const read::Weights& weights, const std::string& layer) {
  const auto* found = weights.find(layer + ".weight");
  if (found == nullptr || found->shape.size() != 4) return {0, 0};
  return {found->shape[0], found->shape[1]};
}

// Derives the shape from the file's own, or says which figure makes it another network.
Result<NetworkShape> shape_of(const read::Weights& weights, const LayerNames& names, std::int64_t blocks) {
  NetworkShape shape;
  shape.blocks = blocks;
  shape.doublings = static_cast<std::int64_t>(names.up.size());
  const auto [features, inputs] = channels_of(weights, names.first);
  shape.features = features;
  shape.growth = channels_of(weights, names.dense.front())[0];
  const auto bad = [&](const std::string& what) { return Error{Error::Kind::BadFile, what, weights.file()}; };
  if (features < 1 || shape.growth < 1)
    return bad("its first layers are not convolutions, so it is not a network of ESRGAN");
  shape.fold = 0;
  for (const std::int64_t fold : {1, 2, 4}) {
    if (inputs == 3 * fold * fold) shape.fold = fold;
  }
  if (shape.fold == 0) return bad("takes " + number(inputs) + " channels; 3 (x4) and 12 (x2) work");
  if (shape.fold > 2 || (shape.scale() != 2 && shape.scale() != 4))
    return bad("its scale is " + number(shape.scale()) + "; 2 and 4 work");
  return shape;
}

}  // namespace

std::vector<read::WantedWeight> wanted_of(const NetworkShape& shape, const LayerNames& names) {
  std::vector<read::WantedWeight> wanted;
  const auto want = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    wanted.push_back({name + ".weight", {to, from, 3, 3}});
    wanted.push_back({name + ".bias", {to}});
  };
  const std::int64_t features = shape.features;
  want(names.first, shape.inputs(), features);
  for (std::size_t i = 0; i < names.dense.size(); ++i) {
    const auto k = static_cast<std::int64_t>(i) % 5;
    want(names.dense[i], features + k * shape.growth, k < 4 ? shape.growth : features);
  }
  want(names.trunk, features, features);
  for (const std::string& up : names.up) want(up, features, features);
  want(names.high, features, features);
  want(names.last, features, 3);
  return wanted;
}

Result<ModelFile> open_model(const std::string& path, std::int64_t scale) {
  ULLAGE_TRY_VALUE(const auto whole, read::Weights::open(path));
  ModelFile file;
  std::optional<Layout> layout;
  for (const std::string_view prefix : kPrefixes) {
    file.weights = std::make_shared<const read::Weights>(whole.under(prefix));
    layout = layout_of(*file.weights);
    if (layout) break;
  }
  if (!layout) return no_rrdb(whole);
  const std::int64_t blocks = count_blocks(*file.weights, *layout);
  file.names = names_of(*layout, blocks, *layout == Layout::Model ? count_doublings(*file.weights) : 2);
  ULLAGE_TRY_VALUE(file.shape, shape_of(*file.weights, file.names, blocks));
  if (scale != 0 && scale != file.shape.scale()) {
    return Error{Error::Kind::BadFile,
                 "its scale is " + number(file.shape.scale()) + " and --scale says " + number(scale) +
                     "; give the model of that scale, or leave --scale out",
                 path};
  }
  const auto wanted = wanted_of(file.shape, file.names);
  ULLAGE_TRY(read::match(*file.weights, wanted));
  ULLAGE_TRY(read::match_floats(*file.weights, wanted));
  return file;
}

}  // namespace ullage::upscale
