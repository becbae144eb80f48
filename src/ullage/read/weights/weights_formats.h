// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of each format that Weights reads, by name. The bytes must outlive them; `name` is what messages call the
// file. A file may be given to the reader of its format only: the is_ functions look at its first bytes.

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ullage::read {

// torch before 1.6: four pickles (a magic number, 1001, facts of the machine, the object), a pickled list of keys, and
// for each key a storage: the number of its elements in 8 bytes, and they.
bool is_legacy_weights(std::span<const std::byte> content);
Result<std::vector<NamedWeight>> read_legacy_weights(std::span<const std::byte> content, const std::string& name);

// torch since 1.6: a zip archive with <folder>/data.pkl, which holds the object, and <folder>/data/<key>, the storages.
// A TorchScript archive has its modules as objects there, and code besides, which is not looked at.
struct ZipWeights {
  WeightsFormat format = WeightsFormat::Zip;
  std::vector<NamedWeight> tensors;
};
bool is_zip(std::span<const std::byte> content);
Result<ZipWeights> read_zip_weights(std::span<const std::byte> content, const std::string& name);

// safetensors_header.h
bool is_safetensors(std::span<const std::byte> content);
Result<std::vector<NamedWeight>> read_safetensors(std::span<const std::byte> content, const std::string& name);

}  // namespace ullage::read
