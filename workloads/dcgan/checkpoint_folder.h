// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder of checkpoints: step-NNNNNN.safetensors. A checkpoint is written beside its name, brought to the disk and
// renamed; only then the older ones go. So at any moment, a kill or a full disk included, the last whole one is there.
//
//   step-000010.safetensors                                        kept until ...
//   step-000020.safetensors.partial  -> fsync -> rename -> fsync of the folder -> ... here

#include "program/safetensors.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ullage::dcgan {

class CheckpointFolder final {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  // Steps of the checkpoints there, the newest first.
  std::vector<std::uint64_t> steps() const;
  std::string file_of(std::uint64_t step) const;

  // Removes what a run that was killed left half-written.
  void remove_partial() const;

  // Leaves the new one alone in the folder. On failure the older ones are as they were and nothing of the new one is
  // left; the error says so.
  Status write(std::uint64_t step, std::span<const program::TensorToWrite> tensors,
               const program::Metadata& metadata) const;

  // The newest, wholly verified. When it is damaged the error says how, and names an older one that is whole if there
  // is one.
  Result<program::SafetensorsFile> open_newest() const;

 private:
  Status install(const std::string& partial, const std::string& file) const;
  std::string path_;
};

}  // namespace ullage::dcgan
