// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files for the tests of pictures: made by the libraries themselves or by hand, in a folder that goes with the test.

#include "ullage/base/bytes.h"

#include "image/picture.h"

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace ullage {
// For GoogleTest's messages.
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
  // Makes the folders on the way. Returns the whole path.
  std::string write(const std::string& name, const FileBytes& bytes) const;
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// While it lives the process may read and write only what anybody may: root, who may do all, becomes nobody.
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
  int depth = 8;      // 16: the high byte is the value, the low one its complement
  bool grey = false;  // then channel 0
  Fill fill = Fill::Samples;
};
void make_png(const std::string& path, const PngShape& shape);

struct JpegShape {
  PictureSize size;
  bool progressive = false;
  int components = 3;  // 1, 3 (4:2:0), or 2 and 4 with no colours named
};
void make_jpeg(const std::string& path, const JpegShape& shape);

// A chunk of a PNG, with its checksum.
FileBytes chunk(const std::string& kind, const FileBytes& data);
// Signature and IHDR of an 8-bit RGB picture.
FileBytes png_start(PictureSize size);

FileBytes operator+(FileBytes a, const FileBytes& b);

Bytes resident();
// How far the peak of the resident size (VmHWM) rises above what is resident now while `work` runs.
Bytes peak_growth(const std::function<void()>& work);

// A ChargeMemory that keeps a record.
struct Charges {
  std::vector<Bytes> bytes;
  int held = 0;
  Bytes resident_at_release{};

  ChargeMemory callback();
};

}  // namespace ullage::image::test
