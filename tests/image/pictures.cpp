// SPDX-License-Identifier: Apache-2.0
#include "pictures.h"

#include <gtest/gtest.h>

#include <cstdio>

#include <jpeglib.h>
#include <malloc.h>
#include <png.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ullage::image::test {
namespace {

// Reads a line such as "VmHWM:   1234 kB" of /proc/self/status.
Bytes status_line(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return Bytes{std::strtoull(line.c_str() + name.size() + 1, nullptr, 10)} * 1024;
  }
  ADD_FAILURE() << name << " is not in /proc/self/status";
  return {};
}

std::uint8_t png_value(PngShape::Fill fill, std::uint32_t x, std::uint32_t y, int c) {
  if (fill == PngShape::Fill::OneColour) return 77;
  if (fill == PngShape::Fill::Samples) return sample(x, y, c);
  const std::uint32_t mixed = (x * 73'856'093u) ^ (y * 19'349'663u) ^ (static_cast<unsigned>(c) * 83'492'791u);
  return static_cast<std::uint8_t>((mixed * 2'654'435'761u) >> 24);
}

void fill_png_row(const PngShape& shape, std::uint32_t y, FileBytes& row) {
  row.clear();
  for (std::uint32_t x = 0; x < shape.size.width; ++x) {
    for (int c = 0; c < (shape.grey ? 1 : 3); ++c) {
      const std::uint8_t value = png_value(shape.fill, x, y, c);
      row.push_back(value);
      if (shape.depth == 16) row.push_back(static_cast<std::uint8_t>(~value));
    }
  }
}

std::FILE* create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) ADD_FAILURE() << path << " cannot be made";
  return file;
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "ullage-image-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, const FileBytes& bytes) const {
  return write(name, std::string(bytes.begin(), bytes.end()));
}

std::string TempFolder::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

AsAnybody::AsAnybody() : was_root_(geteuid() == 0) {
  constexpr uid_t kNobody = 65534;
  if (was_root_ && seteuid(kNobody) != 0) ADD_FAILURE() << "root cannot become nobody";
}

AsAnybody::~AsAnybody() {
  if (was_root_ && seteuid(0) != 0) ADD_FAILURE() << "nobody cannot become root again";
}

FileBytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return FileBytes(std::istreambuf_iterator<char>(file), {});
}

std::uint8_t sample(std::uint32_t x, std::uint32_t y, int c) {
  return static_cast<std::uint8_t>(x * 5 + y * 3 + static_cast<unsigned>(c) * 80);
}

void make_png(const std::string& path, const PngShape& shape) {
  std::FILE* file = create(path);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, info, shape.size.width, shape.size.height, shape.depth,
               shape.grey ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
               shape.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, 1);
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  FileBytes row;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint32_t y = 0; y < shape.size.height; ++y) {
      if (shape.fill != PngShape::Fill::OneColour || y == 0) fill_png_row(shape, y, row);
      png_write_row(png, row.data());
    }
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  std::fclose(file);
}

void make_jpeg(const std::string& path, const JpegShape& shape) {
  std::FILE* file = create(path);
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, file);
  jpeg.image_width = shape.size.width;
  jpeg.image_height = shape.size.height;
  jpeg.input_components = shape.components;
  jpeg.in_color_space = shape.components == 3 ? JCS_RGB : shape.components == 1 ? JCS_GRAYSCALE : JCS_UNKNOWN;
  jpeg_set_defaults(&jpeg);
  if (shape.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  FileBytes row(std::size_t{shape.size.width} * static_cast<unsigned>(shape.components));
  for (std::uint32_t y = 0; y < shape.size.height; ++y) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto parts = static_cast<std::size_t>(shape.components);
      row[i] =
          static_cast<std::uint8_t>(sample(static_cast<std::uint32_t>(i / parts), y, static_cast<int>(i % parts)) / 2);
    }
    JSAMPROW at = row.data();
    jpeg_write_scanlines(&jpeg, &at, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::fclose(file);
}

FileBytes operator+(FileBytes a, const FileBytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

namespace {
FileBytes big_endian(std::uint32_t n) {
  return {static_cast<std::uint8_t>(n >> 24), static_cast<std::uint8_t>(n >> 16), static_cast<std::uint8_t>(n >> 8),
          static_cast<std::uint8_t>(n)};
}
}  // namespace

FileBytes chunk(const std::string& kind, const FileBytes& data) {
  const FileBytes body = FileBytes(kind.begin(), kind.end()) + data;
  const auto checksum = static_cast<std::uint32_t>(crc32(0, body.data(), static_cast<unsigned>(body.size())));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(checksum);
}

FileBytes png_start(PictureSize size) {
  const FileBytes signature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return signature + chunk("IHDR", big_endian(size.width) + big_endian(size.height) + FileBytes{8, 2, 0, 0, 0});
}

Bytes resident() { return status_line("VmRSS"); }

Bytes peak_growth(const std::function<void()>& work) {
  malloc_trim(0);                               // free but resident memory would hide what `work` takes
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the peak to what is resident now: proc(5)
  const Bytes before = resident();
  work();
  return saturating_sub(status_line("VmHWM"), before);
}

ChargeMemory Charges::callback() {
  return [this](Bytes wanted, std::string_view) {
    bytes.push_back(wanted);
    ++held;
    return std::shared_ptr<void>(this, [](void* at) {
      auto* charges = static_cast<Charges*>(at);
      --charges->held;
      charges->resident_at_release = resident();
    });
  };
}

}  // namespace ullage::image::test
