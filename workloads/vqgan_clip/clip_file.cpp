// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/clip_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

using Wanted = std::vector<read::WantedWeight>;

constexpr std::int64_t kLargestWidth = 65'536;
constexpr std::int64_t kMostLayers = 256;
constexpr std::int64_t kLargestPatch = 1024;
constexpr std::int64_t kHead = 64;  // width of an attention head (Transformer::heads)
constexpr std::array<std::string_view, 4> kPublished = {"ViT-B/32", "ViT-B/16", "ViT-L/14", "ViT-L/14@336px"};
// Numbers that the published archives hold as tensors. They may be there, and are not read.
constexpr std::array<std::string_view, 3> kFigures = {"input_resolution", "context_length", "vocab_size"};

void want_linear(Wanted& wanted, const std::string& name, std::int64_t from, std::int64_t to) {
  wanted.push_back({name + ".weight", {to, from}});
  wanted.push_back({name + ".bias", {to}});
}

void want_clip_norm(Wanted& wanted, const std::string& name, std::int64_t width) {
  wanted.push_back({name + ".weight", {width}});
  wanted.push_back({name + ".bias", {width}});
}

void want_transformer(Wanted& wanted, const std::string& prefix, const Transformer& transformer) {
  const std::int64_t width = transformer.width;
  for (std::int64_t i = 0; i < transformer.layers; ++i) {
    const std::string name = prefix + std::to_string(i);
    want_clip_norm(wanted, name + ".ln_1", width);
    wanted.push_back({name + ".attn.in_proj_weight", {3 * width, width}});
    wanted.push_back({name + ".attn.in_proj_bias", {3 * width}});
    want_linear(wanted, name + ".attn.out_proj", width, width);
    want_clip_norm(wanted, name + ".ln_2", width);
    want_linear(wanted, name + ".mlp.c_fc", width, 4 * width);
    want_linear(wanted, name + ".mlp.c_proj", 4 * width, width);
  }
}

constexpr const char* kVisionLayers = "visual.transformer.resblocks.";
constexpr const char* kTextLayers = "transformer.resblocks.";

// Returns the number of layers: one more than the largest number that follows the prefix in a key. If a layer in
// between is absent, its keys are reported as missing later. Numbers above kMostLayers count as kMostLayers, which is
// refused.
std::int64_t layers_of(const read::Weights& weights, std::string_view prefix) {
  std::int64_t layers = 0;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (!name.starts_with(prefix)) continue;
    std::int64_t layer = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + prefix.size(), end, layer).ec != std::errc{}) continue;
    layers = std::max(layers, std::min(layer, kMostLayers) + 1);
  }
  return layers;
}

// Guesses what the file is, for the message that a tensor of CLIP is missing or has the wrong number of extents.
std::string what_it_is(const read::Weights& weights) {
  if (weights.find("visual.layer1.0.conv1.weight") != nullptr) {
    return "this is a CLIP with a ResNet; those with a vision transformer work, as ViT-B/32 and ViT-B/16";
  }
  for (const auto& [name, tensor] : weights.tensors()) {
    if (name.ends_with("decoder.conv_in.weight")) return "this is a VQGAN; give it with --checkpoint";
    if (name.find("vision_model.") != std::string::npos) {
      return "these are the names of another library's CLIP; give the published file";
    }
    if (name.find(kVisionLayers) != std::string::npos) {
      return "other tensors are those of a CLIP with a vision transformer, so the file is damaged or incomplete; give "
             "the published file";
    }
  }
  return "this is not a CLIP; give the published file, as ViT-B-32.pt";
}

// Returns the extents of a tensor; empty if it is missing or has not `count` of them.
std::vector<std::int64_t> extents(const read::Weights& weights, const std::string& name, std::size_t count) {
  const auto* found = weights.find(name);
  if (found == nullptr || found->shape.size() != count) return {};
  return found->shape;
}

// Returns what is wrong with the sizes, or "". `positions`: the places of visual.positional_embedding.
std::string what_is_wrong(const ClipShape& shape, std::int64_t positions) {
  const auto bounded = [](const char* what, std::int64_t value, std::int64_t most, std::int64_t unit) {
    if (value >= 1 && value <= most && value % unit == 0) return std::string();
    return std::string(what) + " " + std::to_string(value) + " is out of range: it must be from " +
           std::to_string(unit) + " to " + std::to_string(most) +
           (unit > 1 ? " and a multiple of " + std::to_string(unit) : "");
  };
  for (const std::string& wrong : {bounded("a vision transformer of width", shape.vision.width, kLargestWidth, kHead),
                                   bounded("vision layers:", shape.vision.layers, kMostLayers, 1),
                                   bounded("a text transformer of width", shape.text.width, kLargestWidth, kHead),
                                   bounded("text layers:", shape.text.layers, kMostLayers, 1),
                                   bounded("patches of side", shape.patch, kLargestPatch, 1)}) {
    if (!wrong.empty()) return wrong;
  }
  if (shape.resolution > 0 && shape.tokens() == positions) return "";
  return "visual.positional_embedding has " + std::to_string(positions) + " places; expected one more than a square";
}

bool may_be_extra_in_clip(std::string_view name) {
  // Scripted archives hold attention masks beside the weights.
  return std::find(kFigures.begin(), kFigures.end(), name) != kFigures.end() || name.ends_with("attn_mask");
}

}  // namespace

Result<ClipShape> clip_shape(const read::Weights& weights) {
  const auto bad = [&](const std::string& what) { return Error{Error::Kind::BadFile, what, weights.file()}; };
  const auto patches = extents(weights, "visual.conv1.weight", 4);
  const auto places = extents(weights, "visual.positional_embedding", 2);
  const auto projection = extents(weights, "visual.proj", 2);
  const auto words = extents(weights, "token_embedding.weight", 2);
  const auto text_places = extents(weights, "positional_embedding", 2);
  for (const auto& [name, found] : {std::pair("visual.conv1.weight", patches),
                                    {"visual.positional_embedding", places},
                                    {"visual.proj", projection},
                                    {"token_embedding.weight", words},
                                    {"positional_embedding", text_places}}) {
    if (found.empty())
      return bad(std::string(name) + " is missing or has another number of extents: " + what_it_is(weights));
  }
  ClipShape shape;
  shape.vision = {patches[0], layers_of(weights, kVisionLayers)};
  shape.patch = patches[3];
  const auto grid = static_cast<std::int64_t>(
      std::llround(std::sqrt(static_cast<double>(std::clamp<std::int64_t>(places[0] - 1, 0, 1 << 24)))));
  shape.resolution = grid * std::min(shape.patch, kLargestPatch);
  shape.text = {words[1], layers_of(weights, kTextLayers)};
  shape.context = text_places[0];
  shape.vocabulary = words[0];
  shape.width = projection[1];
  if (const std::string wrong = what_is_wrong(shape, places[0]); !wrong.empty()) return bad(wrong);
  return shape;
}

Wanted wanted_of_clip(const ClipShape& shape) {
  const std::int64_t width = shape.vision.width;
  Wanted wanted = {{"visual.class_embedding", {width}},
                   {"visual.positional_embedding", {shape.tokens(), width}},
                   {"visual.proj", {width, shape.width}},
                   {"visual.conv1.weight", {width, 3, shape.patch, shape.patch}},
                   {"positional_embedding", {shape.context, shape.text.width}},
                   {"text_projection", {shape.text.width, shape.width}},
                   {"logit_scale", {}},
                   {"token_embedding.weight", {shape.vocabulary, shape.text.width}}};
  want_clip_norm(wanted, "visual.ln_pre", width);
  want_transformer(wanted, kVisionLayers, shape.vision);
  want_clip_norm(wanted, "visual.ln_post", width);
  want_transformer(wanted, kTextLayers, shape.text);
  want_clip_norm(wanted, "ln_final", shape.text.width);
  return wanted;
}

Result<ClipFile> open_clip(const std::string& path) {
  ULLAGE_TRY_VALUE(const auto file, read::Weights::open(path));
  const bool is_under = file.find("state_dict.visual.conv1.weight") != nullptr;
  auto weights = std::make_shared<const read::Weights>(file.under(is_under ? "state_dict." : ""));
  ULLAGE_TRY_VALUE(const auto shape, clip_shape(*weights));
  const Wanted wanted = wanted_of_clip(shape);
  ULLAGE_TRY(read::match(*weights, wanted, may_be_extra_in_clip));
  ULLAGE_TRY(read::match_floats(*weights, wanted));
  return ClipFile{shape, std::move(weights)};
}

Result<std::string> find_clip(const std::string& named, const std::string& home) {
  std::error_code ignored;
  if (std::filesystem::exists(named, ignored)) return named;
  const auto missing = [](const std::string& what, const std::string& where) {
    return Error{Error::Kind::NotFound, what, where};
  };
  if (std::find(kPublished.begin(), kPublished.end(), named) == kPublished.end()) {
    return missing("no such file; name CLIP's file with --clip, or ViT-B/32 or ViT-B/16 for one in ~/.cache/clip",
                   named);
  }
  std::string name = named;
  std::replace(name.begin(), name.end(), '/', '-');
  const std::string kept = home + "/.cache/clip/" + name + ".pt";
  if (std::filesystem::exists(kept, ignored)) return kept;
  return missing("no such file: this program downloads nothing; name CLIP's file with --clip", kept);
}

}  // namespace ullage::vqgan_clip
