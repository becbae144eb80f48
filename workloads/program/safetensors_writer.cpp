// SPDX-License-Identifier: Apache-2.0
#include "program/safetensors.h"

#include "program/safetensors_format.h"
#include "program/sha256.h"
#include "ullage/base/sizes.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ullage::program {
namespace {

// Bytes that are digested and then written in one piece: few enough to be still in the CPU's cache for the write.
constexpr std::uint64_t kPiece = 4ull << 20;

// Returns the header, with zeros in the place of the digest. The digest is taken of the whole file with these zeros,
// and is then written over them.
std::string header_of(std::span<const TensorToWrite> tensors, const Metadata& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"]["sha256"] = std::string(kDigestDigits, '0');
  for (const auto& [key, value] : metadata) {
    ULLAGE_CHECK(key != "sha256", "the digest is written by write_safetensors");
    header["__metadata__"][key] = value;
  }
  Bytes offset;
  for (const TensorToWrite& tensor : tensors) {
    const Bytes end = offset + size_of(tensor.shape);
    header[tensor.name] = {{"dtype", name_of(tensor.shape.dtype)},
                           {"shape", tensor.shape.sizes},
                           {"data_offsets", {offset.count, end.count}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the tensors start at a multiple of 8
  return text;
}

// A file being written, in place of one that may be there (the header says what callers do about that). The destructor
// removes it unless finish() succeeded.
class NewFile final {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  ~NewFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!finished_) ::unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  bool is_open() const { return fd_ >= 0; }

  bool append(const void* data, std::uint64_t size, Sha256& digest) {
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const std::uint64_t piece = std::min(size, kPiece);
      digest.update(bytes, Bytes{piece});
      if (!write_all(bytes, piece)) return false;
      bytes += piece;
      size -= piece;
    }
    return true;
  }

  bool overwrite(const std::string& text, std::uint64_t offset) {
    return ::pwrite(fd_, text.data(), text.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(text.size());
  }

  bool finish() { return finished_ = ::fsync(fd_) == 0; }

 private:
  bool write_all(const char* bytes, std::uint64_t size) {
    while (size > 0) {
      const ssize_t written = ::write(fd_, bytes, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes += written;
      size -= static_cast<std::uint64_t>(written);
    }
    return true;
  }

  std::string path_;
  int fd_ = -1;
  bool finished_ = false;
};

}  // namespace

Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors, const Metadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t header_size = header.size();
  Bytes total{sizeof header_size + header_size};
  for (const TensorToWrite& tensor : tensors) total += size_of(tensor.shape);

  const auto failed = [&] {
    return Error{Error::Kind::System, "cannot write " + to_string(total) + ": " + std::strerror(errno), path};
  };
  NewFile file(path);
  if (!file.is_open()) return failed();
  Sha256 digest;
  if (!file.append(&header_size, sizeof header_size, digest)) return failed();
  if (!file.append(header.data(), header.size(), digest)) return failed();
  for (const TensorToWrite& tensor : tensors) {
    if (!file.append(tensor.data, size_of(tensor.shape).count, digest)) return failed();
  }
  if (!file.overwrite(digest.finish(), sizeof header_size + digest_place(header))) return failed();
  if (!file.finish()) return failed();
  return success();
}

}  // namespace ullage::program
