// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ullage::runtime {

// Lets go of what the process has touched of its libraries' code and constants; what runs again comes back from the
// page cache, a few pages at a time. Most of what torch touches as it is loaded (the registration of its ops) never
// runs again: of about 75 MiB 35 come back in a small net's first steps, and the rest is the pool's.
//
// Without this the figure depends on the kernel too: one that keeps files in huge pages (Linux 6.18 with ext4) maps
// 2 MiB of a library for each page that is touched.
//
// Left alone are pages that are the process's own, with a debugger's breakpoint or a profiler's patch in them.
void trim_libraries();

}  // namespace ullage::runtime
