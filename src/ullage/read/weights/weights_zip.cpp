// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/printable.h"
#include "ullage/read/weights/checkpoint_pickle.h"
#include "ullage/read/weights/weights_formats.h"
#include "ullage/read/weights/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

namespace ullage::read {
namespace {

using Entry = ZipArchive::Entry;

constexpr std::string_view kObject = "data.pkl";

Error bad_archive(const std::string& name, std::uint64_t at, const std::string& message) {
  return {Error::Kind::BadFile, message, fmt::format("{}:{}", name, at)};
}

// Finds the entry "<folder>/data.pkl"; BadFile if there is none, or a second one.
Result<Entry> find_object(const ZipArchive& zip, const std::string& name) {
  const Entry* found = nullptr;
  for (const Entry& entry : zip.entries()) {
    const std::size_t slash = entry.name.find('/');
    if (entry.name.substr(slash == std::string_view::npos ? 0 : slash + 1) != kObject) continue;
    if (found)
      return bad_archive(name, entry.header, "the archive has a second entry data.pkl instead of one: it is damaged");
    found = &entry;
  }
  if (found) return *found;
  return bad_archive(
      name, 0,
      fmt::format("a zip archive of {} entries without data.pkl; expected one of torch.save or torch.jit.save",
                  zip.entries().size()));
}

// Checks the checksum, unless it is 0: torch's writer can be told to leave it out.
Status check_crc(const Entry& entry, std::span<const std::byte> bytes, const std::string& name) {
  const auto crc = std::uint32_t(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (entry.crc == 0 || entry.crc == crc) return success();
  return bad_archive(
      name, entry.begin,
      fmt::format("the checksum of data.pkl is {:08x}, the archive says {:08x}: the file is damaged", crc, entry.crc));
}

// Refuses archives that are not little-endian. Torch before 2.0 wrote no entry for it; its archives are accepted,
// because very few big-endian machines wrote any.
Status check_byte_order(const ZipArchive& zip, const std::string& folder, const std::string& name) {
  const Entry* entry = zip.find(folder + "byteorder");
  if (!entry) return success();
  ULLAGE_TRY_VALUE(const auto bytes, zip.stored(*entry));
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order == "little") return success();
  return bad_archive(name, entry->begin,
                     fmt::format("byte order '{}', expected 'little'; save it again on another machine",
                                 printable(order, kNameInMessage)));
}

Result<std::span<const std::byte>> storage(const ZipArchive& zip, const std::string& folder,
                                           const CheckpointStorageId& id, const CheckpointPickle& file) {
  const std::string shown = printable(id.key, kNameInMessage);
  const Entry* entry = zip.find(folder + "data/" + std::string(id.key));
  if (!entry) return file.bad({}, fmt::format("the archive has no entry data/{}: the file is damaged", shown));
  ULLAGE_TRY_VALUE(const auto bytes, zip.stored(*entry));
  if (bytes.size() >= id.size.count) return bytes.first(id.size.count);
  return bad_archive(file.name, entry->begin,
                     fmt::format("entry data/{} has {} bytes, its tensor needs {}: the file is damaged", shown,
                                 bytes.size(), id.size.count));
}

}  // namespace

bool is_zip(std::span<const std::byte> content) {
  return content.size() >= 4 && content[0] == std::byte{'P'} && content[1] == std::byte{'K'} &&
         (content[2] == std::byte{3} || content[2] == std::byte{5});
}

Result<ZipWeights> read_zip_weights(std::span<const std::byte> content, const std::string& name) {
  ULLAGE_TRY_VALUE(const ZipArchive zip, ZipArchive::parse(content, name));
  ULLAGE_TRY_VALUE(const Entry object, find_object(zip, name));
  const std::string folder(object.name.substr(0, object.name.size() - kObject.size()));
  ULLAGE_TRY(check_byte_order(zip, folder, name));
  ULLAGE_TRY_VALUE(const auto bytes, zip.stored(object));
  ULLAGE_TRY(check_crc(object, bytes, name));
  ULLAGE_TRY_VALUE(const Pickle pickle, Pickle::parse_checkpoint(bytes, name, object.begin));
  const CheckpointPickle file{pickle, name, object.begin};
  ULLAGE_TRY_VALUE(auto tensors,
                   named_tensors(file, [&](const CheckpointStorageId& id) { return storage(zip, folder, id, file); }));
  const bool is_script = zip.find(folder + "constants.pkl") != nullptr;
  return ZipWeights{is_script ? WeightsFormat::TorchScript : WeightsFormat::Zip, std::move(tensors)};
}

}  // namespace ullage::read
