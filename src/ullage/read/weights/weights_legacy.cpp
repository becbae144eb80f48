// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/printable.h"
#include "ullage/read/pickle/pickle_bytes.h"
#include "ullage/read/weights/checkpoint_pickle.h"
#include "ullage/read/weights/weights_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::read {
namespace {

using namespace std::string_view_literals;

// The pickled magic number: LONG1 of 10 bytes, 0x1950a86a20f9469cfc6c, then STOP. PROTO and maybe FRAME precede it.
constexpr std::string_view kMagic = "\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
constexpr std::size_t kMagicWithin = 32;
constexpr std::int64_t kProtocol = 1001;

std::size_t end_of_magic(std::span<const std::byte> content) {
  const std::string_view begin(reinterpret_cast<const char*>(content.data()), std::min(content.size(), kMagicWithin));
  const std::size_t at = begin.starts_with('\x80') ? begin.find(kMagic) : std::string_view::npos;
  return at == std::string_view::npos ? 0 : at + kMagic.size();
}

class LegacyReader final {
 public:
  LegacyReader(std::span<const std::byte> content, const std::string& name)
      : content_(content), name_(name), at_(end_of_magic(content)) {}

  Result<std::vector<NamedWeight>> read() {
    ULLAGE_TRY(read_head());
    const std::uint64_t place = at_;
    ULLAGE_TRY_VALUE(const Pickle object, next_pickle());
    const CheckpointPickle file{object, name_, place};
    ULLAGE_TRY(collect_ids(file));
    ULLAGE_TRY(find_storages());
    return named_tensors(file, [this](const CheckpointStorageId& id) { return Result(storages_.at(id.key).bytes); });
  }

 private:
  struct Storage {
    CheckpointStorageId id;
    std::span<const std::byte> bytes;
    bool is_found = false;
  };

  Error bad(std::uint64_t at, const std::string& message) const {
    return {Error::Kind::BadFile, message, fmt::format("{}:{}", name_, at)};
  }
  std::string shown(std::string_view key) const { return "'" + printable(key, kNameInMessage) + "'"; }

  Result<Pickle> next_pickle() {
    const auto rest = content_.subspan(at_);
    const auto window = rest.first(std::min(rest.size(), PickleLimits{}.file_bytes));
    Result<Pickle> pickle = Pickle::parse_checkpoint(window, name_, at_);
    if (pickle) at_ += pickle->end();
    return pickle;
  }

  Status read_head() {
    const std::uint64_t begin = at_;
    ULLAGE_TRY_VALUE(const Pickle protocol, next_pickle());
    const auto number = protocol.signed_integer(protocol.root());
    if (number != kProtocol) {
      return bad(begin, fmt::format("protocol {} of torch.save, {} is known: the file is damaged", number.value_or(0),
                                    kProtocol));
    }
    const std::uint64_t machine_at = at_;
    ULLAGE_TRY_VALUE(const Pickle machine, next_pickle());
    const auto facts = machine.items(machine.root());
    for (std::size_t i = 0; i + 1 < facts.size(); i += 2) {
      if (machine.string(facts[i]) != "little_endian") continue;
      if (facts[i + 1] == PickleValue(PickleValue::Kind::Bool, 1)) return success();
      return bad(machine_at, "written with the highest byte first (big endian); save it again on another machine");
    }
    return bad(machine_at, "does not say in which order bytes are written: the file is damaged");
  }

  // Collects the storages that the object names. The file must have all of them, even those that no tensor uses.
  Status collect_ids(const CheckpointPickle& file) {
    for (const PickleValue persistent : file.pickle.persistent()) {
      ULLAGE_TRY_VALUE(const auto id, storage_id(file, persistent));
      if (!id) continue;
      const auto [known, is_new] = storages_.try_emplace(id->key, Storage{*id, {}, false});
      if (is_new || known->second.id.size == id->size) continue;
      return file.bad(persistent, fmt::format("storage {} has {} bytes, and {} elsewhere: the file is damaged",
                                              shown(id->key), id->size.count, known->second.id.size.count));
    }
    return success();
  }

  Status find_storages() {
    const std::uint64_t keys_at = at_;
    ULLAGE_TRY_VALUE(const Pickle keys, next_pickle());
    const auto list = keys.items(keys.root());
    for (const PickleValue key : list) {
      const auto storage = storages_.find(keys.string(key));
      if (key.kind() != PickleValue::Kind::String || storage == storages_.end() || storage->second.is_found) {
        return bad(keys_at,
                   fmt::format("the list of keys has {}, which no tensor has, or has it twice: the file is damaged",
                               shown(keys.string(key))));
      }
      ULLAGE_TRY(take(storage->second));
    }
    for (const auto& [key, storage] : storages_) {
      if (storage.is_found) continue;
      return bad(keys_at,
                 fmt::format("storage {} is not among the {} keys: the file is damaged", shown(key), list.size()));
    }
    if (at_ == content_.size()) return success();
    return bad(at_,
               fmt::format("the last storage ends at byte {}, the file has {}: it is damaged", at_, content_.size()));
  }

  Status take(Storage& storage) {
    const std::uint64_t left = content_.size() - at_, size = storage.id.size.count;
    if (left < 8 || left - 8 < size) {
      return bad(at_, fmt::format("storage {} needs {} bytes, {} are left: the file is cut short, fetch it again",
                                  shown(storage.id.key), size + 8, left));
    }
    const std::uint64_t elements = little_endian(&content_[at_], 8);
    if (elements != storage.id.elements) {
      return bad(at_, fmt::format("storage {} has {} elements here and {} in its tensor: the file is damaged",
                                  shown(storage.id.key), elements, storage.id.elements));
    }
    storage.bytes = content_.subspan(at_ + 8, size);
    storage.is_found = true;
    at_ += 8 + size;
    return success();
  }

  const std::span<const std::byte> content_;
  const std::string& name_;
  std::uint64_t at_;  // next byte
  std::map<std::string_view, Storage> storages_;
};

}  // namespace

bool is_legacy_weights(std::span<const std::byte> content) { return end_of_magic(content) != 0; }

Result<std::vector<NamedWeight>> read_legacy_weights(std::span<const std::byte> content, const std::string& name) {
  return LegacyReader(content, name).read();
}

}  // namespace ullage::read
