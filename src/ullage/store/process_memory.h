// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the operating system says processes hold. The figures that budgets are judged by.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <vector>

namespace ullage::store {

// Resident bytes now (/proc/self/statm). About 5 us.
Bytes resident_now();

// The most resident bytes since the process began (VmHWM of /proc/self/status), as /usr/bin/time prints. About 30 us.
Bytes resident_peak();

// The same of another process of the same person; zero: it is gone.
Bytes resident_of(std::int32_t pid);

// Resident bytes of a process, in the kernel's accounts of shared pages (smaps_rollup). Milliseconds for a large process.
struct SharedPages {
  Bytes proportional;        // each page that n processes share counts as one part in n (Pss)
  Bytes files_proportional;  // the part of it that is backed by files: code and data of libraries, mapped files
  Bytes clean_alone;         // pages that this process alone has and has not written; nearly all are of files
};
// Where the kernel keeps no such accounts, every page counts whole.
SharedPages shared_pages_of(std::int32_t pid);
// SharedPages::proportional: those of a tree of processes add up.
Bytes proportional_of(std::int32_t pid);

// Resident bytes of a process that are backed by files, however many others have them too (RssFile of status). Zero: it
// is gone.
Bytes file_pages_of(std::int32_t pid);

// What its page faults so far can have given it at most, a small page each (minflt of /proc/PID/stat). Zero: it is
// gone.
Bytes faulted_of(std::int32_t pid);

// False: it has ended, or never was. A process that is ending shows no resident bytes while its memory is given back.
bool holds_memory(std::int32_t pid);

// `root` and all processes that descend from it and are alive, `root` first.
std::vector<std::int32_t> process_tree(std::int32_t root);

}  // namespace ullage::store
