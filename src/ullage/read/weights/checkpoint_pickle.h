// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors in a pickle of torch.save or torch.jit.save. Each is named by its path: the keys and indices that lead to
// it, joined by dots. Paths lead through dicts of every class (OrderedDict; keys that are text or integers), lists,
// tuples, and the attributes of TorchScript's modules. Any other object is passed by, whatever it holds.
//
// A tensor is a record of a call of torch._utils._rebuild_tensor, _v2 or _v3 with a storage, an offset, a shape and
// strides; _rebuild_parameter and _rebuild_parameter_with_state around it make it a parameter and change nothing.
// Sparse, quantised and subclassed tensors are objects like any other.

#include "ullage/read/pickle/pickle.h"
#include "ullage/read/weights/weight_tensor.h"

#include <functional>
#include <optional>

namespace ullage::read {

struct CheckpointLimits {
  std::size_t depth = 100;              // of containers in each other
  std::size_t values = 1u << 24;        // looked at, shared ones each time they are met
  std::size_t name_bytes = 4096;        // of one path to a tensor
  std::size_t described = 1u << 20;     // bytes of names, shapes and strides together ...
  std::size_t described_per_byte = 16;  // ... and these for each byte of the pickle
  std::size_t dimensions = 64;          // torch's own limit
};

// A parsed pickle, and where it stands in which file.
struct CheckpointPickle {
  const Pickle& pickle;
  const std::string& name;
  std::uint64_t place = 0;

  Error bad(PickleValue near, const std::string& message) const;  // BadFile with `name:offset`
};

// What a persistent id says of a storage that lies elsewhere in the file.
struct CheckpointStorageId {
  std::string_view key;
  std::optional<Dtype> dtype;  // nothing: bytes, the tensor says of what
  std::uint64_t elements = 0;
  Bytes size;
};

// Nothing where the id is that of something else (old checkpoints keep the sources of modules so).
Result<std::optional<CheckpointStorageId>> storage_id(const CheckpointPickle& file, PickleValue persistent);

// The bytes of a storage, exactly `size`. The error's place is of its own.
using Storages = std::function<Result<std::span<const std::byte>>(const CheckpointStorageId&)>;

// By name. BadFile for damage, for two tensors of one name, and for what passes a limit.
Result<std::vector<NamedWeight>> named_tensors(const CheckpointPickle& file, const Storages& storages,
                                               const CheckpointLimits& limits = {});

}  // namespace ullage::read
