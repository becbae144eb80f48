// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a CLIP with a vision transformer. Its sizes are derived from the file. They give the keys that the
// file must have (302 keys, 151,277,313 parameters for ViT-B/32).

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"
#include "ullage/read/weights/weights_match.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {

struct Transformer {
  std::int64_t width = 0;
  std::int64_t layers = 0;

  std::int64_t heads() const { return width / 64; }  // heads have 64 channels in every published CLIP
};

struct ClipShape {
  Transformer vision;
  std::int64_t patch = 0;       // side in pixels
  std::int64_t resolution = 0;  // side of its input picture: 224
  Transformer text;
  std::int64_t context = 0;     // tokens in a text: 77
  std::int64_t vocabulary = 0;  // 49,408
  std::int64_t width = 0;       // of the vectors for texts and pictures

  std::int64_t tokens() const { return resolution / patch * (resolution / patch) + 1; }  // in a picture
};

// Derives the sizes from the tensors' shapes. BadFile if the file is no such CLIP.
Result<ClipShape> clip_shape(const read::Weights& weights);

std::vector<read::WantedWeight> wanted_of_clip(const ClipShape& shape);

struct ClipFile {
  ClipShape shape;
  std::shared_ptr<const read::Weights> weights;
};

// Opens the file and checks that it holds exactly a whole CLIP, in floats of 16, 32 or 64 bits. The three numbers of
// scripted archives and their attention masks may be there too. NotFound, BadFile.
Result<ClipFile> open_clip(const std::string& path);

// Returns `named` if that file exists. For the name of a published CLIP ("ViT-B/32"), returns the file that the
// original program caches under `home`: .cache/clip/ViT-B-32.pt. NotFound, with advice, because nothing is downloaded.
Result<std::string> find_clip(const std::string& named, const std::string& home);

}  // namespace ullage::vqgan_clip
