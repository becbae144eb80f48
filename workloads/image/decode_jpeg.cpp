// SPDX-License-Identifier: Apache-2.0
#include "image/decode_jpeg.h"

#include "image/bad_picture.h"
#include "image/c_guard.h"

#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <jerror.h>
#include <malloc.h>

#include <algorithm>

namespace ullage::image {
namespace {

// A file of a few kilobytes can claim thousands of scans over a big picture, and each walks over all its coefficients.
// Encoders write about ten.
constexpr int kMaxScans = 100;

// If fewer bytes than this were freed, malloc keeps them for the next picture, because malloc_trim walks the whole
// heap.
constexpr Bytes kWorthATrim = 1_MiB;

// libjpeg's structure comes first, so that its callbacks can cast to ours.
struct Errors {
  jpeg_error_mgr base;
  CGuard guard;
};
struct Source {
  jpeg_source_mgr base;
  InputFile* file;
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  errors->guard.no_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
  info->err->format_message(info, errors->guard.message);
  static_assert(sizeof errors->guard.message >= JMSG_LENGTH_MAX);
  errors->guard.leave();
}

// After these warnings libjpeg goes on with pixels that it made up.
bool pixels_are_lost(int warning) {
  return warning == JWRN_HUFF_BAD_CODE || warning == JWRN_ARITH_BAD_CODE || warning == JWRN_HIT_MARKER ||
         warning == JWRN_MUST_RESYNC;
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && pixels_are_lost(info->err->msg_code)) on_jpeg_error(info);
}

void on_scan(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* errors = reinterpret_cast<Errors*>(info->err);
  std::snprintf(errors->guard.message, sizeof errors->guard.message, "more than %d scans", kMaxScans);
  errors->guard.leave();
}

boolean fill_source(j_decompress_ptr info) {
  auto* source = reinterpret_cast<Source*>(info->src);
  const auto bytes = source->file->next();
  if (bytes.empty()) ERREXIT(info, JERR_INPUT_EOF);
  source->base.next_input_byte = bytes.data();
  source->base.bytes_in_buffer = bytes.size();
  return TRUE;
}

void skip_source(j_decompress_ptr info, long count) {
  for (std::size_t left = count > 0 ? static_cast<std::size_t>(count) : 0; left > 0;) {
    if (info->src->bytes_in_buffer == 0) fill_source(info);
    const std::size_t part = std::min(left, info->src->bytes_in_buffer);
    info->src->next_input_byte += part;
    info->src->bytes_in_buffer -= part;
    left -= part;
  }
}

void leave_source(j_decompress_ptr) {}

// Owns libjpeg's state. Every call of libjpeg goes through run().
class JpegReader final {
 public:
  explicit JpegReader(InputFile& file) : file_(file), source_{{}, &file} {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_jpeg_error;
    errors_.base.emit_message = on_message;
    source_.base.init_source = leave_source;
    source_.base.fill_input_buffer = fill_source;
    source_.base.skip_input_data = skip_source;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = leave_source;
    progress_.progress_monitor = on_scan;
  }
  ~JpegReader() {
    jpeg_destroy_decompress(&info_);
    // libjpeg uses malloc, which would keep a whole picture's memory in the process.
    if (coefficients_ >= kWorthATrim) malloc_trim(0);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  template <class Body>
  bool run(Body body) {
    return guarded(errors_.guard, body);
  }
  Error failed(const std::string& place) const { return failure(file_, errors_.guard, place); }

  bool read_header() {
    return run([this] {
      jpeg_create_decompress(&info_);
      info_.src = &source_.base;
      info_.progress = &progress_;
      jpeg_read_header(&info_, TRUE);
      if (jpeg_has_multiple_scans(&info_)) count_coefficients();
    });
  }

  bool multiple_scans() const { return coefficients_ > Bytes{}; }
  // Bytes of coefficients that libjpeg will hold for the whole picture; zero if it holds only one row of blocks.
  Bytes coefficients() const { return coefficients_; }

  // Reads the whole file if the picture has several scans.
  bool start() {
    return run([this] {
      info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_RGB;
      jpeg_start_decompress(&info_);
    });
  }
  bool read_row(std::uint8_t* to) {
    return run([this, to] {
      JSAMPROW row = to;
      jpeg_read_scanlines(&info_, &row, 1);
    });
  }
  bool read_end() {
    return run([this] { jpeg_finish_decompress(&info_); });
  }

  PictureSize size() const { return {info_.image_width, info_.image_height}; }
  int components() const { return info_.num_components; }
  int scan() const { return info_.input_scan_number; }

 private:
  void count_coefficients();

  InputFile& file_;
  Errors errors_{};
  Source source_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  Bytes coefficients_{};
};

constexpr std::uint64_t up_to_multiple(std::uint64_t n, int of) {
  const auto unit = static_cast<std::uint64_t>(of);
  return (n + unit - 1) / unit * unit;
}

// Called when the header is read, because libjpeg frees its components after the last row.
void JpegReader::count_coefficients() {
  for (int i = 0; i < info_.num_components; ++i) {
    const jpeg_component_info& part = info_.comp_info[i];
    const std::uint64_t blocks = up_to_multiple(part.width_in_blocks, part.h_samp_factor) *
                                 up_to_multiple(part.height_in_blocks, part.v_samp_factor);
    coefficients_ += Bytes{sizeof(JBLOCK)} * blocks;
  }
}

// As in Pillow, four components are Adobe's inverted CMYK: nk * c / 255, rounded, in integers. Converts in place, 4
// bytes to 3.
void cmyk_to_rgb(std::vector<std::uint8_t>& row, std::uint32_t width) {
  for (std::size_t x = 0; x < width; ++x) {
    const std::uint8_t* cmyk = &row[4 * x];
    const unsigned white = cmyk[3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255u - cmyk[c]) * white + 128;
      row[3 * x + c] = static_cast<std::uint8_t>(white - (((product >> 8) + product) >> 8));
    }
  }
}

// Puts an opaque alpha behind each pixel, in place, 3 bytes to 4.
void add_alpha(std::vector<std::uint8_t>& row, std::uint32_t width) {
  for (std::size_t x = width; x-- > 0;) {
    row[4 * x + 3] = 255;
    for (std::size_t c = 3; c-- > 0;) row[4 * x + c] = row[3 * x + c];
  }
}

Status stream_rows(JpegReader& reader, PictureSize size, RowSink& sink, Pixels pixels) {
  const bool cmyk = reader.components() == 4;
  std::vector<std::uint8_t> row(std::size_t{size.width} * (cmyk ? 4 : bytes_of(pixels)));
  for (std::uint32_t y = 0; y < size.height; ++y) {
    if (!reader.read_row(row.data())) return reader.failed(after_rows(y, size.height));
    if (cmyk) cmyk_to_rgb(row, size.width);
    if (pixels == Pixels::Rgba) add_alpha(row, size.width);
    sink.row({row.data(), size.width * bytes_of(pixels)});
  }
  return success();
}

std::string in_scan(const JpegReader& reader, PictureSize size) {
  if (!reader.multiple_scans()) return after_rows(0, size.height);
  return "in scan " + std::to_string(reader.scan()) + ", before its " + std::to_string(size.height) + " rows are whole";
}

}  // namespace

Status decode_jpeg(InputFile& file, RowSink& sink, const ChargeMemory& charge, Pixels pixels) {
  std::shared_ptr<void> held;  // released after the memory it was charged for
  JpegReader reader(file);
  if (!reader.read_header()) return reader.failed("in its header");
  const PictureSize size = reader.size();
  ULLAGE_TRY(check_size(file, size));
  if (reader.components() == 2 || reader.components() > 4) {
    return bad_picture(file, "has " + std::to_string(reader.components()) + " colour components; 1, 3 and 4 are read");
  }
  if (reader.multiple_scans())
    held = charge_if_asked(charge, reader.coefficients(), "the coefficients of a progressive JPEG");
  if (!reader.start()) return reader.failed(in_scan(reader, size));
  sink.kind({reader.components() == 1, false});
  sink.start(size);
  ULLAGE_TRY(stream_rows(reader, size, sink, pixels));
  if (!reader.read_end()) return reader.failed("after its last row");
  return success();
}

}  // namespace ullage::image
