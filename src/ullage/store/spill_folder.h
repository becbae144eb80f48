// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where spilled bytes may go: a folder on a disk, looked at before the program starts, so that a run does not end in
// its middle for a reason that was known at the beginning.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::store {

struct SpillPlace {
  std::string folder;  // absolute: the program may change its working folder
  Bytes most;          // the spill file never takes more of the disk; a multiple of 4096
};

// Reads "DIR" or "DIR:SIZE" and looks at the folder. What follows the last ':' is the bound if parse_bytes accepts it;
// otherwise all of it names the folder. Without SIZE the bound is what the file system has free for this user, less a
// reserve for everyone else: the larger of 5 % of it and 64 MiB. The limit on file sizes (ulimit -f) bounds both.
// NotFound: no such folder. BadArgument: SIZE is less than a page or more than is free, or a file system in memory.
// System: not a folder, not writable, no space left beside the reserve.
Result<SpillPlace> find_spill_place(std::string_view spec);

// The first of the folders that will do, without a SIZE; the error says of each why it will not.
Result<SpillPlace> first_spill_place(const std::vector<std::string>& folders);

// Without --spill: TMPDIR, /tmp, /var/tmp, then the working folder.
Result<SpillPlace> default_spill_place();

}  // namespace ullage::store
