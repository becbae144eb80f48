// SPDX-License-Identifier: Apache-2.0
#include "image/write_png.h"

#include "ullage/base/check.h"

#include "image/c_guard.h"

#include <fcntl.h>
#include <png.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace ullage::image {
namespace {

// A file under a new name beside `path`. keep() renames it to `path`; without that it is removed.
class NewFile final {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // All three return false from the first error on.
  bool ok() const { return errno_ == 0; }
  bool write(const std::uint8_t* bytes, std::size_t count) noexcept;
  bool keep();

  Error error() const {
    return {Error::Kind::System,
            std::string("cannot be written (") + std::strerror(errno_) +
                "); check the folder, its permissions and its space",
            path_};
  }

 private:
  std::string path_, new_path_;
  int fd_ = -1;
  int errno_ = 0;
  bool exists_ = false;  // new_path_ is on the disk
};

NewFile::NewFile(const std::string& path) : path_(path) {
  for (int i = 0; i < 1000 && fd_ < 0; ++i) {
    new_path_ = path + ".new-" + std::to_string(getpid()) + "-" + std::to_string(i);
    fd_ = ::open(new_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  exists_ = fd_ >= 0;
  if (!exists_) errno_ = errno;
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (exists_) ::unlink(new_path_.c_str());
}

bool NewFile::write(const std::uint8_t* bytes, std::size_t count) noexcept {
  while (ok() && count > 0) {
    const ssize_t done = ::write(fd_, bytes, count);
    if (done >= 0) {
      bytes += done;
      count -= static_cast<std::size_t>(done);
    } else if (errno != EINTR) {
      errno_ = errno;
    }
  }
  return ok();
}

bool NewFile::keep() {
  // close() may be the first call to report that the disk is full.
  if (ok() && ::close(std::exchange(fd_, -1)) != 0) errno_ = errno;
  if (ok() && std::rename(new_path_.c_str(), path_.c_str()) != 0) errno_ = errno;
  if (ok()) exists_ = false;
  return ok();
}

void on_write_error(png_structp png, png_const_charp message) {
  auto* guard = static_cast<CGuard*>(png_get_error_ptr(png));
  guard->say(message);
  guard->leave();
}

void on_write_warning(png_structp, png_const_charp) {}

void on_write(png_structp png, png_bytep bytes, std::size_t count) {
  if (!static_cast<NewFile*>(png_get_io_ptr(png))->write(bytes, count)) png_error(png, "not written");
}

void on_flush(png_structp) {}

// Owns libpng's state.
struct PngWriter final {
  CGuard guard;
  png_structp png = nullptr;
  png_infop info = nullptr;

  PngWriter() = default;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
};

// Returns libpng's view of the texts, which points into `texts` and `stored`.
std::vector<png_text> png_texts(std::span<const PngText> texts, std::vector<StoredText>& stored) {
  std::vector<png_text> fields;
  stored.reserve(texts.size());
  for (const PngText& text : texts) {
    ULLAGE_CHECK(is_png_keyword(text.keyword), "a keyword that PNG allows");
    StoredText& words = stored.emplace_back(stored_text(text.text));
    png_text& field = fields.emplace_back();
    field.compression = words.latin1 ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
    field.key = const_cast<char*>(text.keyword.c_str());  // read only
    field.text = words.bytes.data();
  }
  return fields;
}

bool write_all(PngWriter& writer, NewFile& file, std::uint32_t width, std::uint32_t height, const std::uint8_t* rgb,
               std::span<const png_text> texts) {
  return guarded(writer.guard, [&writer, &file, width, height, rgb, texts] {
    writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer.guard, on_write_error, on_write_warning);
    if (writer.png != nullptr) writer.info = png_create_info_struct(writer.png);
    if (writer.info == nullptr) writer.guard.leave();
    png_set_write_fn(writer.png, &file, on_write, on_flush);
    png_set_user_limits(writer.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(writer.png, writer.info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_text(writer.png, writer.info, texts.data(), static_cast<int>(texts.size()));
    png_write_info(writer.png, writer.info);
    for (std::uint32_t y = 0; y < height; ++y) png_write_row(writer.png, rgb + std::size_t{y} * width * 3);
    png_write_end(writer.png, writer.info);
  });
}

}  // namespace

Status write_png(const std::string& path, std::uint32_t width, std::uint32_t height, std::span<const std::uint8_t> rgb,
                 std::span<const PngText> texts) {
  ULLAGE_CHECK(
      width > 0 && height > 0 && rgb.size() / 3 / width == height && rgb.size() % (std::size_t{width} * 3) == 0,
      "a picture of width x height x 3 bytes");
  std::vector<StoredText> stored;
  const std::vector<png_text> fields = png_texts(texts, stored);
  NewFile file(path);
  if (!file.ok()) return file.error();
  PngWriter writer;
  const bool written = write_all(writer, file, width, height, rgb.data(), fields);
  // The picture and the file are fine, so only memory can have failed.
  if (!written && file.ok()) throw std::bad_alloc();
  if (!written || !file.keep()) return file.error();
  return success();
}

}  // namespace ullage::image
