// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/picture_files.h"

#include "program/output_files.h"
#include "torch_program/pixels.h"
#include "vqgan_clip/zoom.h"

#include <filesystem>

namespace ullage::vqgan_clip {
namespace {

Status write(const std::string& path, const at::Tensor& picture, const Phrase& phrase) {
  const image::PngText text{"comment", to_string(phrase)};
  return torch_program::write_png(path, picture.select(0, 0), {&text, 1});
}

}  // namespace

PictureFiles::PictureFiles(const Options& options)
    : options_(options), folder_((std::filesystem::path(options.out).parent_path() / ".").string()) {}

Status PictureFiles::prepare() const {
  ULLAGE_TRY(program::make_writable(folder_));
  if (!options_.video && !options_.zoom_video) return success();
  return program::make_writable(folder_ + "/steps");
}

Status PictureFiles::save(const at::Tensor& picture, const Phrase& phrase) const {
  return write(options_.out, picture, phrase);
}

Status PictureFiles::save_frame(const at::Tensor& picture, const Phrase& phrase, std::int64_t number) const {
  return write(frame_path(folder_ + "/steps", number), picture, phrase);
}

}  // namespace ullage::vqgan_clip
