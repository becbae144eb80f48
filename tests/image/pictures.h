// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files for the tests of pictures, made by the image libraries or by hand, in a folder that is removed after the test.

#include "ullage/base/bytes.h"

#include "image/picture.h"

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace ullage {
// How GoogleTest's messages print bytes.
inline void PrintTo(Bytes bytes, std::ostream* out) { *out << bytes.count << " bytes"; }
}  // namespace ullage

namespace ullage::image::test {

using FileBytes = std::vector<std::uint8_t>;

class TempFolder final {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // Makes missing folders. Returns the whole path.
  std::string write(const std::string& name, const FileBytes& bytes) const;
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// While it lives, root has only the rights of the user nobody, so that file permissions apply to it.
class AsAnybody final {
 public:
  AsAnybody();
  ~AsAnybody();
  AsAnybody(const AsAnybody&) = delete;
  AsAnybody& operator=(const AsAnybody&) = delete;

 private:
  bool was_root_;
};

FileBytes read_file(const std::string& path);

// The value of channel c at (x, y) of all pictures made here: smooth and different everywhere.
std::uint8_t sample(std::uint32_t x, std::uint32_t y, int c);

struct PngShape {
  enum class Fill { Samples, OneColour, Noise };
  PictureSize size;
  bool interlaced = false;
  int depth = 8;      // 16: the high byte is the value, the low byte its complement
  bool grey = false;  // then the value is that of channel 0
  Fill fill = Fill::Samples;
};
void make_png(const std::string& path, const PngShape& shape);

struct JpegShape {
  PictureSize size;
  bool progressive = false;
  int components = 3;  // 1, 3 (4:2:0), or 2 and 4 without named colours
};
void make_jpeg(const std::string& path, const JpegShape& shape);

// Returns a PNG chunk with its checksum.
FileBytes chunk(const std::string& kind, const FileBytes& data);
// Returns the signature and IHDR of an 8-bit RGB picture.
FileBytes png_start(PictureSize size);

FileBytes operator+(FileBytes a, const FileBytes& b);

Bytes resident();
// Returns how far the peak of the resident size (VmHWM) rises above the present resident size while `work` runs.
Bytes peak_growth(const std::function<void()>& work);

// A ChargeMemory that records its calls.
struct Charges {
  std::vector<Bytes> bytes;
  int held = 0;
  Bytes resident_at_release{};

  ChargeMemory callback();
};

}  // namespace ullage::image::test
