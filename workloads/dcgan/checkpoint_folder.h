// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder of checkpoints, step-NNNNNN.safetensors. A checkpoint is written under another name, brought to the disk
// (fsync) and renamed. Only then are the older ones removed, so a whole checkpoint always exists, even after a kill or
// a full disk.
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

  // Returns the steps of the checkpoints in the folder, newest first.
  std::vector<std::uint64_t> steps() const;
  std::string file_of(std::uint64_t step) const;

  // Removes the half-written file that a killed run left.
  void remove_partial() const;

  // Writes a checkpoint, then removes all older ones. On failure the older ones are untouched and the error names the
  // newest of them. The new file is removed, unless only the last fsync of the folder failed.
  Status write(std::uint64_t step, std::span<const program::TensorToWrite> tensors,
               const program::Metadata& metadata) const;

  // Opens the newest checkpoint and verifies its SHA-256. If it is damaged, the error says how, and names the newest
  // older one that is whole, if there is one. NotFound: the folder has no checkpoint.
  Result<program::SafetensorsFile> open_newest() const;

 private:
  Status install(const std::string& partial, const std::string& file) const;
  std::string path_;
};

}  // namespace ullage::dcgan
