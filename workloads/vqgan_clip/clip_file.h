// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a CLIP with a vision transformer: its sizes, which the file tells, and the keys that go with them (302
// keys, 151,277,313 figures for ViT-B/32).

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

  std::int64_t heads() const { return width / 64; }  // in every published CLIP
};

struct ClipShape {
  Transformer vision;
  std::int64_t patch = 0;       // side in pixels
  std::int64_t resolution = 0;  // side of the picture it sees: 224
  Transformer text;
  std::int64_t context = 0;     // tokens of a text: 77
  std::int64_t vocabulary = 0;  // 49,408
  std::int64_t width = 0;       // of the vectors that texts and pictures become

  std::int64_t tokens() const { return resolution / patch * (resolution / patch) + 1; }  // of a picture
};

// As far as the file tells it; BadFile where it is none of these.
Result<ClipShape> clip_shape(const read::Weights& weights);

std::vector<read::WantedWeight> wanted_of_clip(const ClipShape& shape);

struct ClipFile {
  ClipShape shape;
  std::shared_ptr<const read::Weights> weights;
};

// Opens the file and checks that it is a whole CLIP and nothing else, in figures of 16, 32 or 64 bits. NotFound,
// BadFile.
Result<ClipFile> open_clip(const std::string& path);

// The path itself, or for the name of a published CLIP ("ViT-B/32") the file that the original keeps under `home`:
// .cache/clip/ViT-B-32.pt. NotFound, with what to do: nothing is downloaded.
Result<std::string> find_clip(const std::string& named, const std::string& home);

}  // namespace ullage::vqgan_clip
