// SPDX-License-Identifier: Apache-2.0
#include "image/png_rows.h"

#include "ullage/base/check.h"

#include "image/c_guard.h"
#include "image/new_file.h"

#include <png.h>

#include <new>
#include <utility>
#include <vector>

namespace ullage::image {
namespace {

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

int type_of(PngColour colour) {
  switch (colour) {
    case PngColour::Grey:
      return PNG_COLOR_TYPE_GRAY;
    case PngColour::GreyAlpha:
      return PNG_COLOR_TYPE_GRAY_ALPHA;
    case PngColour::Rgb:
      return PNG_COLOR_TYPE_RGB;
    case PngColour::Rgba:
      return PNG_COLOR_TYPE_RGB_ALPHA;
  }
  contract_broken("unknown PngColour", __FILE__, __LINE__);
}

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

}  // namespace

// Owns the file and libpng's state.
struct PngRows::Writer final {
  NewFile file;
  CGuard guard;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::size_t row_bytes = 0;
  std::uint32_t rows_left = 0;

  explicit Writer(const std::string& path) : file(path) {}
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  template <class Body>
  Status run(Body body) {
    if (guarded(guard, body)) return success();
    // The picture and the file are fine, so only memory can have failed.
    if (file.ok()) throw std::bad_alloc();
    return file.error();
  }

  Status begin(std::uint32_t width, std::uint32_t height, int type, std::span<const png_text> texts) {
    return run([this, width, height, type, texts] {
      png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &guard, on_write_error, on_write_warning);
      if (png != nullptr) info = png_create_info_struct(png);
      if (info == nullptr) guard.leave();
      png_set_write_fn(png, &file, on_write, on_flush);
      png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_IHDR(png, info, width, height, 8, type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                   PNG_FILTER_TYPE_DEFAULT);
      png_set_text(png, info, texts.data(), static_cast<int>(texts.size()));
      png_write_info(png, info);
    });
  }
};

PngRows::PngRows(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
PngRows::PngRows(PngRows&& other) noexcept = default;
PngRows::~PngRows() = default;

Result<PngRows> PngRows::begin(const std::string& path, std::uint32_t width, std::uint32_t height, PngColour colour,
                               std::span<const PngText> texts) {
  ULLAGE_CHECK(width > 0 && height > 0, "a picture has pixels");
  std::vector<StoredText> stored;
  const std::vector<png_text> fields = png_texts(texts, stored);
  auto writer = std::make_unique<Writer>(path);
  if (!writer->file.ok()) return writer->file.error();
  ULLAGE_TRY(writer->begin(width, height, type_of(colour), fields));
  writer->row_bytes = std::size_t{width} * static_cast<std::size_t>(colour);
  writer->rows_left = height;
  return PngRows(std::move(writer));
}

std::uint32_t PngRows::width() const { return png_get_image_width(writer_->png, writer_->info); }
std::uint32_t PngRows::rows_left() const { return writer_->rows_left; }

Status PngRows::write(std::span<const std::uint8_t> rows) {
  Writer& writer = *writer_;
  const std::size_t count = rows.size() / writer.row_bytes;
  ULLAGE_CHECK(rows.size() % writer.row_bytes == 0 && count <= writer.rows_left, "rows of the picture");
  ULLAGE_TRY(writer.run([&writer, rows, count] {
    for (std::size_t y = 0; y < count; ++y) png_write_row(writer.png, rows.data() + y * writer.row_bytes);
  }));
  writer.rows_left -= static_cast<std::uint32_t>(count);
  return success();
}

Status PngRows::finish() {
  Writer& writer = *writer_;
  ULLAGE_CHECK(writer.rows_left == 0, "the picture is not whole: rows are missing");
  ULLAGE_TRY(writer.run([&writer] { png_write_end(writer.png, nullptr); }));
  if (!writer.file.keep()) return writer.file.error();
  return success();
}

}  // namespace ullage::image
