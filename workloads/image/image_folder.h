// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pictures of a folder, in the order and with the class numbers of torchvision's ImageFolder (datasets/folder.py):
//
//   flowers/            class_names = {"rose", "tulip"}
//     rose/             0   sorted by name; every sub-folder counts, with or without pictures
//       a.png           rose/a.png, rose/more/b.JPG: files below a class belong to it, however deep
//       more/b.JPG
//     tulip/            1
//
// A flat folder, with pictures directly in it and none in sub-folders, is one class, named after the folder.

#include "ullage/base/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ullage::image {

struct ImageFile {
  std::string path;  // starts with the folder's path as it was given
  std::uint32_t class_index = 0;
};

struct ImageFolder {
  std::vector<std::string> class_names;
  std::vector<ImageFile> images;
  // Number of files that torchvision would read and decode() cannot, by extension in lower case.
  std::map<std::string, std::uint64_t> left_out;

  // "left out 3 files of kinds not read: 2 .bmp, 1 .webp", for a person; "" if there are none.
  std::string note() const;
};

// Follows links, except a link to a folder that contains it (torchvision follows those until the system refuses).
// Errors: NotFound (no such folder), BadArgument (not a folder, or no PNG or JPEG in it), System (a folder in it cannot
// be listed). Torchvision skips such a folder silently.
Result<ImageFolder> list_image_folder(const std::string& folder);

}  // namespace ullage::image
