// SPDX-License-Identifier: Apache-2.0
#pragma once

// Frees bytes of the budget that libraries' code takes, once, before a session starts. Most of the code that torch
// touches while it is loaded (the registration of its ops) never runs again. trim_libraries() gives back about 75 MiB.
// A small net's first steps bring 35 MiB of that back; the pool gets the rest.

namespace ullage::runtime {

// Gives up the resident pages of code and constants, those of the program and of all its libraries. Code that runs
// again comes back from the page cache, a few pages at a time. Huge pages are switched off for these mappings.
// Otherwise a kernel that keeps files in huge pages (Linux 6.18 with ext4) maps 2 MiB of a library for each page that
// is touched.
//
// A run of 512 pages is left alone if one of them is the process's own, because a debugger or a profiler may have
// patched it. It is also left alone if the kernel does not tell
// whose the pages are (/proc/self/pagemap).
void trim_libraries();

}  // namespace ullage::runtime
