// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes files of weights for tests, byte by byte, as torch.save, torch.jit.save and safetensors do.

#include "pickle_text.h"

#include <zlib.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::read::written {

using namespace std::string_literals;
using pickled::little;

template <class T>
std::string raw(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (values.size() != 0) std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

// --- pickles

inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string numbers(std::initializer_list<std::int64_t> values) {
  std::string bytes = "(";
  for (const std::int64_t value : values) bytes += pickled::integer(value);
  return bytes + "t";
}
inline std::string storage(std::string_view key, std::int64_t elements, std::string_view type = "FloatStorage",
                           const std::string& view = "") {
  const std::string module = type == "UntypedStorage" ? "torch.storage" : "torch";
  return "(" + pickled::text("storage") + global(module, type) + pickled::text(key) + pickled::text("cpu") +
         pickled::integer(elements) + view + "tQ";
}
inline std::string tensor(const std::string& storage, std::int64_t offset, std::initializer_list<std::int64_t> shape,
                          std::initializer_list<std::int64_t> strides) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + storage + pickled::integer(offset) + numbers(shape) +
         numbers(strides) + pickled::truth(false) + global("collections", "OrderedDict") + ")RtR";
}
inline std::string tensor_v3(const std::string& storage, std::string_view dtype, std::int64_t extent) {
  return global("torch._utils", "_rebuild_tensor_v3") + "(" + storage + pickled::integer(0) + numbers({extent}) +
         numbers({1}) + pickled::truth(false) + "}" + global("torch", dtype) + "tR";
}
inline std::string parameter(const std::string& tensor) {
  return global("torch._utils", "_rebuild_parameter") + "(" + tensor + pickled::truth(true) +
         global("collections", "OrderedDict") + ")RtR";
}
using Pairs = std::initializer_list<std::pair<std::string_view, std::string>>;
inline std::string items(Pairs pairs) {
  std::string bytes = "(";
  for (const auto& [key, value] : pairs) bytes += pickled::text(key) + value;
  return bytes + "u";
}
// An OrderedDict with _metadata, as state_dict() returns it.
inline std::string ordered_dict(Pairs pairs) {
  return global("collections", "OrderedDict") + ")R" + items(pairs) + "}" + items({{"_metadata", "}"}}) + "b";
}
inline std::string script_module(std::string_view name, Pairs attributes) {
  return global("__torch__", name) + ")\x81}" + items(attributes) + "b";
}
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

// --- zip archives

struct Member {
  std::string name, bytes;
  std::uint16_t method = 0, flags = 0;
};

// An archive whose records tests can change. The offsets are those of its records in `bytes`.
struct Zip {
  bool zip64 = false;
  bool sizes_behind = false;  // as torch writes: sizes follow the entry instead of being in its header
  std::string bytes;
  std::vector<std::size_t> headers, directory;
  std::size_t end = 0;

  Zip(const std::vector<Member>& members, bool in_64, bool behind) : zip64(in_64), sizes_behind(behind) {
    for (const Member& one : members) add(one);
    const std::size_t begin = bytes.size();
    for (std::size_t i = 0; i < members.size(); ++i) list(members[i], headers[i]);
    finish(members.size(), begin);
  }

  void put(std::size_t at, std::uint64_t value, std::size_t size) { bytes.replace(at, size, little(value, size)); }

 private:
  static std::uint32_t crc(const std::string& data) {
    return std::uint32_t(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
  }
  static std::string sizes(std::uint64_t size) { return little(size, 4) + little(size, 4); }

  void add(const Member& one) {
    headers.push_back(bytes.size());
    const std::uint16_t flags = std::uint16_t(one.flags | (sizes_behind ? 8 : 0));
    bytes += "PK\3\4" + little(20, 2) + little(flags, 2) + little(one.method, 2) + little(0, 4);
    bytes += sizes_behind ? little(0, 8) + little(0, 4) : little(crc(one.bytes), 4) + sizes(one.bytes.size());
    const std::string padding(std::size_t{64} - (bytes.size() + 4 + one.name.size() + 4) % 64, 'Z');
    bytes += little(one.name.size(), 2) + little(padding.size() + 4, 2) + one.name + "FB" + little(padding.size(), 2);
    bytes += padding + one.bytes;
    if (sizes_behind) bytes += "PK\7\10" + little(crc(one.bytes), 4) + sizes(one.bytes.size());
  }
  void list(const Member& one, std::size_t header) {
    directory.push_back(bytes.size());
    const std::uint64_t size = one.bytes.size(), open = UINT32_MAX;
    const std::string extra = zip64 ? little(0x5555, 2) + little(2, 2) + "ab" + little(1, 2) + little(24, 2) +
                                          little(size, 8) + little(size, 8) + little(header, 8)
                                    : "";
    bytes += "PK\1\2" + little(20, 2) + little(20, 2) + little(one.flags, 2) + little(one.method, 2) + little(0, 4) +
             little(crc(one.bytes), 4) + sizes(zip64 ? open : size) + little(one.name.size(), 2) +
             little(extra.size(), 2) + little(0, 2) + little(0, 8) + little(zip64 ? open : header, 4) + one.name +
             extra;
  }
  void finish(std::size_t count, std::size_t begin) {
    const std::size_t size = bytes.size() - begin;
    if (zip64) {
      const std::size_t at = bytes.size();
      bytes += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) +
               little(count, 8) + little(size, 8) + little(begin, 8);
      bytes += "PK\6\7" + little(0, 4) + little(at, 8) + little(1, 4);
    }
    end = bytes.size();
    const std::uint64_t open = UINT32_MAX;
    bytes += "PK\5\6" + little(0, 4) + little(zip64 ? 0xffff : count, 2) + little(zip64 ? 0xffff : count, 2) +
             little(zip64 ? open : size, 4) + little(zip64 ? open : begin, 4) + little(0, 2);
  }
};

inline std::string zip(const std::vector<Member>& members) { return Zip(members, false, false).bytes; }

using Storages = std::vector<std::pair<std::string, std::string>>;  // key, bytes

inline std::vector<Member> checkpoint_members(const std::string& object, const Storages& storages) {
  std::vector<Member> members = {{"archive/data.pkl", pickle(object)}, {"archive/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) members.push_back({"archive/data/" + key, bytes});
  members.push_back({"archive/version", "3\n"});
  return members;
}
inline std::string checkpoint(const std::string& object, const Storages& storages) {
  return zip(checkpoint_members(object, storages));
}

// --- legacy

inline const std::string kMagic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s;
inline std::string legacy_head(bool is_little = true, std::int64_t protocol = 1001) {
  return kMagic + pickle(pickled::integer(protocol)) +
         pickle("}(" + pickled::text("protocol_version") + pickled::integer(protocol) + pickled::text("little_endian") +
                pickled::truth(is_little) + "u");
}
// A storage whose elements have `each` bytes.
struct LegacyStorage {
  std::string key, bytes;
  std::size_t each = 4;
};
inline std::string legacy_tail(const std::vector<LegacyStorage>& storages) {
  std::string keys = "](", bytes;
  for (const auto& [key, data, each] : storages) {
    keys += pickled::text(key);
    bytes += little(data.size() / each, 8) + data;
  }
  return pickle(keys + "e") + bytes;
}
inline std::string legacy(const std::string& object, const std::vector<LegacyStorage>& storages) {
  return legacy_head() + pickle(object) + legacy_tail(storages);
}

// --- safetensors

inline std::string safetensors(const std::string& header, const std::string& data) {
  return little(header.size(), 8) + header + data;
}

}  // namespace ullage::read::written
