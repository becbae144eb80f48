// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/elf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

namespace ullage::drycard {
namespace {

Error refused_file(const std::string& path, const char* what, int number) {
  return {Error::Kind::System, std::string("cannot be ") + what + ": " + std::strerror(number), path};
}

Result<std::pair<void*, std::size_t>> map_file(int file, const std::string& path) {
  struct stat about {};
  if (::fstat(file, &about) != 0) return refused_file(path, "looked at", errno);
  if (!S_ISREG(about.st_mode)) return Error{Error::Kind::BadFile, "not a plain file", path};
  if (about.st_size == 0) return Error{Error::Kind::BadFile, "the file has 0 bytes", path};
  const auto size = static_cast<std::size_t>(about.st_size);
  void* begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (begin == MAP_FAILED) return refused_file(path, "mapped", errno);
  return std::pair(begin, size);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a pipe must not block
  if (file < 0) {
    const int number = errno;
    if (number == ENOENT || number == ENOTDIR) return Error{Error::Kind::NotFound, "no such file", path};
    return refused_file(path, "opened", number);
  }
  const auto mapped = map_file(file, path);
  ::close(file);
  if (!mapped) return mapped.error();
  MappedFile made;
  std::tie(made.begin_, made.size_) = *mapped;
  return made;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (begin_ != nullptr) ::munmap(begin_, size_);
}

}  // namespace ullage::drycard
