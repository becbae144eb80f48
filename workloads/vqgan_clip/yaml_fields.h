// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and checks fields of an untrusted yaml by key. Errors name line and key.

#include "ullage/base/result.h"

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::vqgan_clip {

// Thrown only inside this folder's readers, which turn it into a Result.
struct BadYaml final : std::exception {
  explicit BadYaml(Error what_is_wrong) : error(std::move(what_is_wrong)) {}
  Error error;
};

struct Bounds {
  std::int64_t least = 1;
  std::int64_t most = 1;
};

// A mapping and its name: "model.params". Every function throws BadYaml if the yaml is wrong.
class YamlFields final {
 public:
  YamlFields(const YAML::Node& node, std::string path, const std::string& file);

  YamlFields under(const std::string& key) const;  // a mapping
  std::string text(const std::string& key) const;
  std::int64_t number(const std::string& key, Bounds bounds) const;
  std::vector<std::int64_t> numbers(const std::string& key, Bounds count, Bounds bounds) const;
  bool flag(const std::string& key, bool otherwise) const;     // `otherwise` if the key is missing
  void only(const std::vector<std::string_view>& keys) const;  // throws if there is another key

  [[noreturn]] void bad(const std::string& key, const std::string& what) const;

 private:
  YAML::Node at(const std::string& key) const;
  std::int64_t number_of(const YAML::Node& node, const std::string& key, Bounds bounds) const;

  YAML::Node node_;
  std::string path_;
  const std::string& file_;  // must outlive this object
};

}  // namespace ullage::vqgan_clip
