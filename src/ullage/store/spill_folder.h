// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a folder on a disk for the spill file and checks it before the program starts. So a run does not end midway for
// a reason that was known at its beginning.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::store {

struct SpillPlace {
  std::string folder;  // absolute: the program may change its working folder
  Bytes most;          // most bytes of the disk that the spill file takes; a multiple of 4096
};

// Reads "DIR" or "DIR:SIZE" and checks the folder. What follows the last ':' is SIZE, the bound, if parse_bytes()
// accepts it; otherwise the whole text names the folder. Without SIZE the bound is the free space of the file system
// for this user, less a reserve for others: 5 % of it, at least 64 MiB. It is at most the limit on file sizes (ulimit
// -f). NotFound: there is no such folder. BadArgument: DIR is empty or a file system in memory, or SIZE is less than a
// page, more than is free or more than ulimit -f. System: DIR is not a folder or not writable, or has no space beyond
// the reserve.
Result<SpillPlace> find_spill_place(std::string_view spec);

// Returns the first of these folders that will do, with the bound as for no SIZE. If none will, the error has the
// reason for each.
Result<SpillPlace> first_spill_place(const std::vector<std::string>& folders);

// The place if --spill is not given: the first that will do of TMPDIR, /tmp, /var/tmp and the working folder.
Result<SpillPlace> default_spill_place();

}  // namespace ullage::store
