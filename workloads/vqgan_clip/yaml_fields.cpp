// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/yaml_fields.h"

#include "ullage/read/file/printable.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

constexpr std::size_t kShown = 60;

std::string shown(const std::string& text) { return "'" + read::printable(text, kShown) + "'"; }

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

YamlFields::YamlFields(const YAML::Node& node, std::string path, const std::string& file)
    : node_(node), path_(std::move(path)), file_(file) {
  if (!node_.IsMap()) bad("", "is not a mapping of keys to values; give the yaml that came with the VQGAN");
}

void YamlFields::bad(const std::string& key, const std::string& what) const {
  const YAML::Node child = key.empty() ? YAML::Node() : std::as_const(node_)[key];
  const YAML::Mark mark = child.IsDefined() && !child.IsNull() ? child.Mark() : node_.Mark();
  const std::string name = path_.empty() ? key : key.empty() ? path_ : path_ + "." + key;
  throw BadYaml({Error::Kind::BadFile, (name.empty() ? "the file" : name) + " " + what,
                 file_ + ":" + std::to_string(std::max(mark.line, 0) + 1)});
}

YAML::Node YamlFields::at(const std::string& key) const {
  YAML::Node child = std::as_const(node_)[key];
  if (!child.IsDefined() || child.IsNull()) bad(key, "is missing; give the yaml that came with the VQGAN");
  return child;
}

YamlFields YamlFields::under(const std::string& key) const {
  return {at(key), path_.empty() ? key : path_ + "." + key, file_};
}

std::string YamlFields::text(const std::string& key) const {
  const YAML::Node child = at(key);
  if (!child.IsScalar()) bad(key, "is not text");
  return child.Scalar();
}

std::int64_t YamlFields::number_of(const YAML::Node& node, const std::string& key, Bounds bounds) const {
  const std::string from = "a whole number from " + std::to_string(bounds.least) + " to " + std::to_string(bounds.most);
  if (!node.IsScalar()) bad(key, "is not " + from);
  const auto value = whole_number(node.Scalar());
  if (!value || *value < bounds.least || *value > bounds.most) bad(key, "is " + shown(node.Scalar()) + ", not " + from);
  return *value;
}

std::int64_t YamlFields::number(const std::string& key, Bounds bounds) const { return number_of(at(key), key, bounds); }

std::vector<std::int64_t> YamlFields::numbers(const std::string& key, Bounds count, Bounds bounds) const {
  const YAML::Node list = at(key);
  if (!list.IsSequence()) bad(key, "is not a list of numbers");
  const auto size = static_cast<std::int64_t>(list.size());
  if (size < count.least || size > count.most) {
    bad(key, "has " + std::to_string(size) + " numbers; it must have " + std::to_string(count.least) + " to " +
                 std::to_string(count.most));
  }
  std::vector<std::int64_t> values;
  for (const YAML::Node& one : list) values.push_back(number_of(one, key, bounds));
  return values;
}

bool YamlFields::flag(const std::string& key, bool otherwise) const {
  const YAML::Node child = std::as_const(node_)[key];
  if (!child.IsDefined()) return otherwise;
  bool value = false;
  if (!child.IsScalar() || !YAML::convert<bool>::decode(child, value)) bad(key, "is neither true nor false");
  return value;
}

void YamlFields::only(const std::vector<std::string_view>& keys) const {
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    throw BadYaml({Error::Kind::BadFile,
                   path_ + " has " + shown(key) + ", which a VQGAN does not have: this is the yaml of another model",
                   file_ + ":" + std::to_string(entry.first.Mark().line + 1)});
  }
}

}  // namespace ullage::vqgan_clip
