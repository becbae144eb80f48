// SPDX-License-Identifier: Apache-2.0
#include "image/decode_png.h"

#include "image/bad_picture.h"
#include "image/c_guard.h"

#include <png.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace ullage::image {
namespace {

// libpng needs no more, because no chunk is kept. A chunk that claims more is refused, as in most programs that use
// libpng.
constexpr png_alloc_size_t kMaxChunk = 8'000'000;
// Rows wider than this many pixels are charged: libpng holds two of up to 8 bytes a pixel, the decoder one of 3 or
// 4.
constexpr std::uint32_t kWideRow = 65'536;
constexpr std::uint64_t kRowBytesOfLibpng = 8 + 8;  // a pixel

void on_png_error(png_structp png, png_const_charp message) {
  auto* guard = static_cast<CGuard*>(png_get_error_ptr(png));
  guard->say(message);
  guard->leave();
}

void on_png_warning(png_structp, png_const_charp) {}  // warnings do not concern the pixels

void* on_malloc(png_structp png, png_alloc_size_t size) {
  void* at = std::malloc(size);
  if (at == nullptr) static_cast<CGuard*>(png_get_mem_ptr(png))->no_memory = true;
  return at;
}

void on_free(png_structp, void* at) { std::free(at); }

void on_read(png_structp png, png_bytep to, std::size_t count) {
  if (!static_cast<InputFile*>(png_get_io_ptr(png))->read(to, count)) png_error(png, "the file ends");
}

// A buffer for a whole picture. It is mapped and not malloc'ed, so its memory returns to the system as soon as it is
// destroyed.
class BigBuffer final {
 public:
  // The bytes start as zeros. `size` must be above zero. Throws std::bad_alloc if the system has no memory.
  explicit BigBuffer(Bytes size) : begin_(nullptr), size_(size) {
    void* at = mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    // Without huge pages, no more becomes resident than was charged.
    madvise(at, size.count, MADV_NOHUGEPAGE);
    begin_ = static_cast<std::uint8_t*>(at);
  }
  ~BigBuffer() { munmap(begin_, size_.count); }
  BigBuffer(const BigBuffer&) = delete;
  BigBuffer& operator=(const BigBuffer&) = delete;

  std::uint8_t* at(Bytes offset) { return begin_ + offset.count; }

 private:
  std::uint8_t* begin_;
  Bytes size_;
};

// Owns libpng's state. Every call of libpng goes through run().
class PngReader final {
 public:
  PngReader(InputFile& file, Pixels pixels) : file_(file), pixels_(pixels) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  template <class Body>
  bool run(Body body) {
    return guarded(guard_, body);
  }
  Error failed(const std::string& place) const { return failure(file_, guard_, place); }

  bool read_header() {
    return run([this] {
      png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &guard_, on_png_error, on_png_warning, &guard_, on_malloc,
                                      on_free);
      if (png_ != nullptr) info_ = png_create_info_struct(png_);
      if (info_ == nullptr) {
        guard_.say("libpng did not start");
        guard_.leave();
      }
      png_set_read_fn(png_, &file_, on_read);
      // Allows every side that the format allows: check_size() runs next, before memory is allocated, and its message
      // says more than libpng's would.
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_chunk_malloc_max(png_, kMaxChunk);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // texts, profiles, gamma
      if (pixels_ == Pixels::Rgb) {
        png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, reinterpret_cast<png_const_bytep>("tRNS"), 1);
      }
      png_read_info(png_, info_);
    });
  }

  // Sets up conversion to 8-bit RGB or RGBA from whatever the file holds. Allocates the memory of rows.
  bool set_up_rows() {
    return run([this] {
      const bool alpha = kind().alpha;
      png_set_palette_to_rgb(png_);
      png_set_expand_gray_1_2_4_to_8(png_);
      if (pixels_ == Pixels::Rgba) png_set_tRNS_to_alpha(png_);
      png_set_strip_16(png_);
      if (pixels_ == Pixels::Rgb) png_set_strip_alpha(png_);
      png_set_gray_to_rgb(png_);
      if (pixels_ == Pixels::Rgba && !alpha) png_set_add_alpha(png_, 0xff, PNG_FILLER_AFTER);
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
      if (png_get_rowbytes(png_, info_) != png_get_image_width(png_, info_) * bytes_of(pixels_)) {
        png_error(png_, "its rows are of no known kind");
      }
    });
  }

  bool interlaced() const { return png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE; }
  PictureSize size() const { return {png_get_image_width(png_, info_), png_get_image_height(png_, info_)}; }
  // The channels of the file, not of the rows. Valid between read_header() and set_up_rows().
  PictureKind kind() const {
    const auto type = png_get_color_type(png_, info_);
    return {(type & PNG_COLOR_MASK_COLOR) == 0,
            (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0};
  }
  Pixels pixels() const { return pixels_; }
  std::size_t row_bytes() const { return size().width * bytes_of(pixels_); }
  int passes() const { return passes_; }
  bool read_row(std::uint8_t* to) {
    return run([this, to] { png_read_row(png_, to, nullptr); });
  }
  bool read_end() {
    return run([this] { png_read_end(png_, nullptr); });
  }

 private:
  InputFile& file_;
  Pixels pixels_;
  CGuard guard_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

Status stream_rows(PngReader& reader, PictureSize size, RowSink& sink) {
  std::vector<std::uint8_t> row(reader.row_bytes());
  for (std::uint32_t y = 0; y < size.height; ++y) {
    if (!reader.read_row(row.data())) return reader.failed(after_rows(y, size.height));
    sink.row(row);
  }
  return success();
}

std::string in_pass(int pass, std::uint32_t height) {
  return "in pass " + std::to_string(pass) + " of 7, before its " + std::to_string(height) + " rows are whole";
}

// Each pass adds pixels to the rows of the pass before; the last pass completes each row.
Status gather_rows(PngReader& reader, PictureSize size, RowSink& sink) {
  const Bytes row_bytes{reader.row_bytes()};
  BigBuffer all(row_bytes * size.height);
  for (int pass = 1; pass <= reader.passes(); ++pass) {
    const bool last = pass == reader.passes();
    for (std::uint32_t y = 0; y < size.height; ++y) {
      std::uint8_t* row = all.at(row_bytes * y);
      if (!reader.read_row(row)) return reader.failed(last ? after_rows(y, size.height) : in_pass(pass, size.height));
      if (last) sink.row({row, row_bytes.count});
    }
  }
  return success();
}

std::shared_ptr<void> charge_rows(const PngReader& reader, PictureSize size, const ChargeMemory& charge) {
  Bytes needed{};
  if (reader.interlaced()) needed += Bytes{reader.row_bytes()} * size.height;
  if (size.width > kWideRow) needed += Bytes{size.width} * (kRowBytesOfLibpng + bytes_of(reader.pixels()));
  if (needed == Bytes{}) return nullptr;
  return charge_if_asked(charge, needed, reader.interlaced() ? "an interlaced PNG" : "the rows of a wide PNG");
}

}  // namespace

Status decode_png(InputFile& file, RowSink& sink, const ChargeMemory& charge, Pixels pixels) {
  std::shared_ptr<void> held;  // released after the memory it was charged for
  PngReader reader(file, pixels);
  if (!reader.read_header()) return reader.failed("in its header");
  const PictureSize size = reader.size();
  ULLAGE_TRY(check_size(file, size));
  held = charge_rows(reader, size, charge);
  const PictureKind kind = reader.kind();
  if (!reader.set_up_rows()) return reader.failed("in its header");
  sink.kind(kind);
  sink.start(size);
  ULLAGE_TRY(reader.interlaced() ? gather_rows(reader, size, sink) : stream_rows(reader, size, sink));
  // The chunks that follow hold a checksum of the pixels. If the file ends there, all rows are whole and the picture is
  // accepted, as in Pillow.
  if (!reader.read_end() && !file.ran_out()) return reader.failed("after its last row");
  return success();
}

}  // namespace ullage::image
