// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/file_content.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ullage::read {
namespace {

// Closes the file again, unless it is standard input.
class OpenFile final {
 public:
  explicit OpenFile(const std::string& path)
      : own_(path != "-"), file_(own_ ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO) {}
  ~OpenFile() {
    if (own_ && file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int file() const { return file_; }

 private:
  bool own_;
  int file_;
};

Error refused(const std::string& path, const char* what, int number) {
  return {Error::Kind::System, fmt::format("cannot be {}: {}", what, std::strerror(number)), path};
}

}  // namespace

Result<FileContent> FileContent::open(const std::string& path, Bytes most_from_pipe) {
  const std::string shown = path == "-" ? "standard input" : path;
  const OpenFile opened(path);
  if (opened.file() < 0) {
    const int number = errno;
    if (number == ENOENT || number == ENOTDIR) return Error{Error::Kind::NotFound, "no such file", shown};
    return refused(shown, "opened", number);
  }
  struct stat about {};
  if (::fstat(opened.file(), &about) != 0) return refused(shown, "looked at", errno);
  if (S_ISDIR(about.st_mode)) return Error{Error::Kind::BadFile, "a folder; give a file in it", shown};
  // Files of /proc claim a size of 0, so they are read. Standard input is read too: it may be partly consumed already.
  if (S_ISREG(about.st_mode) && about.st_size > 0 && path != "-")
    return map(opened.file(), static_cast<std::size_t>(about.st_size), shown);
  return read_all(opened.file(), shown, most_from_pipe);
}

Result<FileContent> FileContent::map(int file, std::size_t size, const std::string& path) {
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return refused(path, "mapped", errno);
  FileContent content;
  content.mapped_ = mapped;
  content.mapped_size_ = size;
  return content;
}

Result<FileContent> FileContent::read_all(int file, const std::string& path, Bytes most) {
  FileContent content;
  std::string& text = content.read_;
  std::size_t used = 0;
  while (true) {
    if (used == text.size()) text.resize(std::max<std::size_t>(std::size_t{1} << 16, text.size() * 2));
    const ssize_t got = ::read(file, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(path, "read", errno);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > most.count)
      return Error{Error::Kind::BadFile,
                   fmt::format("gives more than {} bytes; the limit is {}; write it to a file", used, most.count),
                   path};
  }
  text.resize(used);
  return content;
}

FileContent::FileContent(FileContent&& other) noexcept { *this = std::move(other); }

FileContent& FileContent::operator=(FileContent&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_size_, other.mapped_size_);
  std::swap(read_, other.read_);
  return *this;
}

FileContent::~FileContent() {
  if (mapped_) ::munmap(mapped_, mapped_size_);
}

void FileContent::let_go(std::span<const std::byte> part) const {
  if (mapped_ == nullptr || part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // unmodified file pages: nothing is lost
}

std::span<const std::byte> FileContent::bytes() const {
  if (mapped_) return {static_cast<const std::byte*>(mapped_), mapped_size_};
  return std::as_bytes(std::span(read_.data(), read_.size()));
}

}  // namespace ullage::read
