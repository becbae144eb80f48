// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the tensors in a pickle of torch.save or torch.jit.save. A tensor's name is its path: the keys and indices that
// lead to it, joined by dots. Paths lead through dicts of every class (OrderedDict; keys that are text or integers),
// lists, tuples, and the attributes of TorchScript's modules. Any other object is skipped with all that it holds.
//
// A tensor is a record of a call of torch._utils._rebuild_tensor, _v2 or _v3. Its arguments are a storage, an offset, a
// shape and strides. _rebuild_parameter and _rebuild_parameter_with_state around it only make it a parameter, and are
// ignored. Sparse, quantised and subclassed tensors are skipped like other objects.

#include "ullage/read/pickle/pickle.h"
#include "ullage/read/weights/weight_tensor.h"

#include <functional>
#include <optional>

namespace ullage::read {

struct CheckpointLimits {
  std::size_t depth = 100;              // of nested containers
  std::size_t values = 1u << 24;        // visited; a shared one counts at each visit
  std::size_t name_bytes = 4096;        // of the text keys in one tensor's path
  std::size_t described = 1u << 20;     // bytes of names, shapes and strides together ...
  std::size_t described_per_byte = 16;  // ... plus these for each byte of the pickle
  std::size_t dimensions = 64;          // torch's own limit
};

// A parsed pickle, the file's name, and the pickle's offset in the file.
struct CheckpointPickle {
  const Pickle& pickle;
  const std::string& name;
  std::uint64_t place = 0;

  Error bad(PickleValue near, const std::string& message) const;  // BadFile with `name:offset`
};

// The facts that a persistent id has about a storage. The storage's bytes are elsewhere in the file.
struct CheckpointStorageId {
  std::string_view key;
  std::optional<Dtype> dtype;  // none for an untyped storage: the tensor names the type
  std::uint64_t elements = 0;
  Bytes size;
};

// None if the id is not a storage's: old checkpoints keep the sources of modules under such ids. BadFile if a storage's
// id is malformed, or of a type or kind that is not supported.
Result<std::optional<CheckpointStorageId>> storage_id(const CheckpointPickle& file, PickleValue persistent);

// Returns the bytes of a storage, exactly `size` of them. Its errors carry their own place in the file.
using Storages = std::function<Result<std::span<const std::byte>>(const CheckpointStorageId&)>;

// Returns all tensors, sorted by name. BadFile if the file is damaged, two tensors have one name, or a limit is
// exceeded.
Result<std::vector<NamedWeight>> named_tensors(const CheckpointPickle& file, const Storages& storages,
                                               const CheckpointLimits& limits = {});

}  // namespace ullage::read
