// SPDX-License-Identifier: Apache-2.0
#pragma once

// The readers of the formats that Weights reads. Each returns the tensors sorted by name; `content` must outlive them.
// Messages call the file `name`. Call a reader only if its is_ function, which looks at the first bytes, returned true.

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ullage::read {

// torch before 1.6: four pickles (a magic number, 1001, facts about the machine, the object) and a pickled list of
// keys. Then each key has a storage: the number of its elements in 8 bytes, then the elements.
bool is_legacy_weights(std::span<const std::byte> content);
Result<std::vector<NamedWeight>> read_legacy_weights(std::span<const std::byte> content, const std::string& name);

// torch since 1.6: a zip archive with the object in <folder>/data.pkl and the storages in <folder>/data/<key>.
// A TorchScript archive has its modules as objects there. It also has code, which is not read.
struct ZipWeights {
  WeightsFormat format = WeightsFormat::Zip;
  std::vector<NamedWeight> tensors;
};
bool is_zip(std::span<const std::byte> content);
Result<ZipWeights> read_zip_weights(std::span<const std::byte> content, const std::string& name);

// The format: safetensors_header.h.
bool is_safetensors(std::span<const std::byte> content);
Result<std::vector<NamedWeight>> read_safetensors(std::span<const std::byte> content, const std::string& name);

}  // namespace ullage::read
