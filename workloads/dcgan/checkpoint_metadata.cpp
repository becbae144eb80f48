// SPDX-License-Identifier: Apache-2.0
#include "dcgan/checkpoint_metadata.h"

#include "program/sha256.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace ullage::dcgan {
namespace {

using Json = nlohmann::ordered_json;

// Digests the pictures' names relative to the folder, in order. If the digests are equal, a DataPlace means the same
// picture.
std::string digest_of_names(const std::vector<std::string>& paths, const std::string& folder) {
  program::Sha256 digest;
  for (const std::string& path : paths)
    digest.update(std::filesystem::path(path).lexically_relative(folder).string() + "\n");
  return digest.finish();
}

// Returns the JSON object under a key; null if there is none or it does not parse.
Json json_of(const program::Metadata& metadata, const std::string& key) {
  const auto stored = metadata.find(key);
  const Json json = stored == metadata.end() ? Json() : Json::parse(stored->second, nullptr, false);
  return json.is_object() ? json : Json();
}

}  // namespace

program::Metadata checkpoint_metadata(const RunPlace& place, const Options& options,
                                      const std::vector<std::string>& pictures) {
  const Json where = {{"step", place.step}, {"epoch", place.data.epoch}, {"index", place.data.index}};
  return {{"format", "ullage-dcgan-checkpoint 1"},
          {"place", where.dump()},
          {"options", Json(options_that_shape_the_run(options)).dump()},
          {"pictures", std::to_string(pictures.size())},
          {"pictures_sha256", digest_of_names(pictures, options.data)}};
}

std::optional<RunPlace> read_place(const program::Metadata& metadata) {
  const Json json = json_of(metadata, "place");
  for (const char* key : {"step", "epoch", "index"}) {
    if (!json.contains(key) || !json[key].is_number_unsigned()) return std::nullopt;
  }
  return RunPlace{json["step"], {json["epoch"], json["index"]}};
}

std::string differing_options(const program::Metadata& metadata, const Options& options) {
  const Json then = json_of(metadata, "options");
  const auto defaults = options_that_shape_the_run(Options{});
  std::map<std::string, std::pair<std::string, std::string>> both;  // in the checkpoint, here
  for (const auto& [name, value] : options_that_shape_the_run(options)) both[name] = {defaults.at(name), value};
  for (const auto& [name, value] : then.items()) {
    const auto here = both.try_emplace(name, "", "not said").first;
    if (value.is_string()) here->second.first = value.get<std::string>();
  }
  std::string text;
  for (const auto& [name, values] : both) {
    if (values.first != values.second)
      text +=
          (text.empty() ? "" : "; ") + name + " is " + values.first + " in the checkpoint, " + values.second + " here";
  }
  return text;
}

std::string differing_pictures(const program::Metadata& metadata, const Options& options,
                               const std::vector<std::string>& pictures) {
  const auto count = metadata.find("pictures");
  const auto names = metadata.find("pictures_sha256");
  if (count == metadata.end() || names == metadata.end()) return "__metadata__ does not say which pictures";
  if (count->second != std::to_string(pictures.size())) {
    return "made with " + count->second + " pictures, " + options.data + " has " + std::to_string(pictures.size());
  }
  if (names->second == digest_of_names(pictures, options.data)) return "";
  return "made with pictures of other names than those in " + options.data;
}

}  // namespace ullage::dcgan
