// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/weights.h"

#include "ullage/read/file/content_kind.h"
#include "ullage/read/weights/weights_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ullage::read {
namespace {

constexpr std::string_view kWantedWeights =
    "expected a file of torch.save, a TorchScript archive, or a safetensors file";

Error refuse(std::span<const std::byte> content, const std::string& name) {
  std::string what = "no weights";
  if (content.empty()) {
    what = "an empty file";
  } else if (const auto kind = kind_of(content); const auto* foreign = std::get_if<ForeignContent>(&kind)) {
    what = foreign->what;
  } else if (std::get<ContentKind>(kind) == ContentKind::Snapshot) {
    what = "a pickle, but not one of torch.save";
  }
  return {Error::Kind::BadFile, fmt::format("{}; {}", what, kWantedWeights), name + ":0"};
}

}  // namespace

Result<Weights> Weights::open(const std::string& path) {
  ULLAGE_TRY_VALUE(FileContent content, FileContent::open(path));
  const auto kept = std::make_shared<const FileContent>(std::move(content));
  Result<Weights> weights = read(kept->bytes(), path == "-" ? "standard input" : path);
  if (weights) weights->content_ = kept;
  return weights;
}

Result<Weights> Weights::read(std::span<const std::byte> content, const std::string& name) {
  Weights weights;
  weights.file_ = name;
  Result<std::vector<NamedWeight>> tensors = std::vector<NamedWeight>();
  if (is_zip(content)) {
    ULLAGE_TRY_VALUE(auto zip, read_zip_weights(content, name));
    weights.format_ = zip.format;
    tensors = std::move(zip.tensors);
  } else if (is_legacy_weights(content)) {
    weights.format_ = WeightsFormat::Legacy;
    tensors = read_legacy_weights(content, name);
  } else if (is_safetensors(content)) {
    weights.format_ = WeightsFormat::Safetensors;
    tensors = read_safetensors(content, name);
  } else {
    return refuse(content, name);
  }
  if (!tensors) return tensors.error();
  weights.tensors_ = std::move(tensors).value();
  return weights;
}

const WeightTensor* Weights::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const NamedWeight& one, std::string_view wanted) { return one.name < wanted; });
  return at != tensors_.end() && at->name == name ? &at->tensor : nullptr;
}

void Weights::let_go(std::span<const std::byte> part) const {
  if (content_) content_->let_go(part);
}

Weights Weights::under(std::string_view prefix) const {
  Weights part;
  part.content_ = content_;
  part.file_ = file_;
  part.format_ = format_;
  for (const NamedWeight& one : tensors_) {
    if (one.name.starts_with(prefix)) part.tensors_.push_back({one.name.substr(prefix.size()), one.tensor});
  }
  return part;
}

}  // namespace ullage::read
