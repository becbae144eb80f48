// SPDX-License-Identifier: Apache-2.0
// Implements storage_id() of checkpoint_pickle.h: what the persistent id of a storage says about it.
#include "ullage/read/file/printable.h"
#include "ullage/read/weights/checkpoint_pickle.h"

#include <fmt/format.h>

namespace ullage::read {
namespace {

bool is_untyped(const PickleGlobal& type) {
  if (type.module != "torch" && type.module != "torch.storage") return false;
  return type.name == "UntypedStorage" || type.name == "_UntypedStorage";
}

}  // namespace

Error CheckpointPickle::bad(PickleValue near, const std::string& message) const {
  return {Error::Kind::BadFile, message, fmt::format("{}:{}", name, place + pickle.offset(near).value_or(0))};
}

// An id is ("storage", torch.FloatStorage, key, "cuda:0", elements); in old checkpoints a view of a storage may follow.
Result<std::optional<CheckpointStorageId>> storage_id(const CheckpointPickle& file, PickleValue persistent) {
  const Pickle& pickle = file.pickle;
  const auto what = pickle.items(persistent);
  const auto parts = what.empty() ? what : pickle.items(what[0]);
  if (parts.empty() || pickle.string(parts[0]) != "storage") return std::optional<CheckpointStorageId>();
  if (parts.size() < 5 || parts[2].kind() != PickleValue::Kind::String) {
    return file.bad(persistent, fmt::format("a storage is described by {} values, not by 5 of which the third is its "
                                            "key: the file is damaged",
                                            parts.size()));
  }
  CheckpointStorageId id;
  id.key = pickle.string(parts[2]);
  const PickleGlobal type = pickle.global(parts[1]);
  if (type.module == "torch" || type.module == "torch.cuda") id.dtype = dtype_of_storage(type.name);
  if (!id.dtype && !is_untyped(type)) {
    return file.bad(persistent,
                    fmt::format("storage '{}' is a {}.{}, whose elements are not known; convert it to float "
                                "and save it again",
                                printable(id.key, kNameInMessage), printable(type.module, kNameInMessage),
                                printable(type.name, kNameInMessage)));
  }
  const auto elements = pickle.unsigned_integer(parts[4]);
  const std::uint64_t each = id.dtype ? size_of(*id.dtype).count : 1;
  if (!elements || *elements > INT64_MAX / each) {
    return file.bad(persistent,
                    fmt::format("storage '{}' has no number of elements below 2^63 bytes: the file is damaged",
                                printable(id.key, kNameInMessage)));
  }
  if (parts.size() > 5 && parts[5].kind() != PickleValue::Kind::None) {
    return file.bad(persistent,
                    fmt::format("storage '{}' is a view of another one, as torch before 0.4 saved them; load "
                                "and save it with a newer torch",
                                printable(id.key, kNameInMessage)));
  }
  id.elements = *elements;
  id.size = Bytes{*elements * each};
  return std::optional<CheckpointStorageId>(id);
}

}  // namespace ullage::read
