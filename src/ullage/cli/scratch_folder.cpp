// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ullage::cli {

namespace fs = std::filesystem;

Result<ScratchFolder> ScratchFolder::make() {
  std::error_code failed;
  const fs::path place = fs::temp_directory_path(failed);
  if (failed) return Error{Error::Kind::System, "no temporary folder: " + failed.message(), "TMPDIR"};
  std::string name = fs::absolute(place / "ullage-predict-XXXXXX", failed).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Error{Error::Kind::System, std::string("no folder can be made there: ") + std::strerror(errno),
                 place.string()};
  }
  return ScratchFolder(name);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace ullage::cli
