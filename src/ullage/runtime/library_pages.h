// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ullage::runtime {

// From now on the code of the libraries that are loaded comes into the process a few pages at a time. A kernel that
// keeps files in huge pages (Linux 6.18 with ext4) maps 2 MiB of a library for each page that is touched: torch's first
// steps then take 45 to 68 MiB where they take 24, as it happens to lie in the page cache, and a budget counts all of
// it. What is mapped already stays. Where the kernel does none of this nothing changes.
void map_libraries_by_small_pages();

}  // namespace ullage::runtime
