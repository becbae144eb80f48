// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pages of files that the program has mapped for itself alone (MAP_PRIVATE), such as weights of safetensors. They are
// not the pool's, and stay in memory once an op has read them. As long as nobody writes to them, the file has the same
// bytes, so they can be let go: the next touch reads them again. The pager decides when (pager_files.cpp). It holds
// its lock then, so FilePages must not call the pager. Thread-safe. Edit this to let go of another kind of pages.

#include "ullage/store/pages.h"

#include <mutex>
#include <vector>

namespace ullage::store {

class FilePages {
 public:
  virtual ~FilePages() = default;

  // Does a mapped file lie at this address?
  virtual bool holds(Address at) const = 0;
  // The bytes of all mappings of files, in memory or not.
  virtual Bytes mapped() const = 0;
  // The bytes of all files that this process has in memory, libraries and shared memory too. Costs one read of /proc.
  virtual Bytes all_there() const = 0;
  // The mappings themselves, by address.
  virtual std::vector<AddressRange> mappings() const = 0;

  // What is in memory of a range, where a file is mapped. Zero if the kernel does not tell.
  struct Count {
    Bytes there;
    Bytes of_file;  // the part of `there` that was not written: it can be let go
  };
  virtual Count count(AddressRange range) const = 0;
  // Lets go of the pages of the range that were not written. Returns Count::of_file afterwards: zero, unless the kernel
  // refused. If no file is mapped there any more, nothing is let go, and the size of the range is returned. If another
  // thread writes to the range meanwhile, it gets a page fault, and the write is tried again (Pager::on_fault()). A
  // system call that writes to the range meanwhile fails with EFAULT.
  virtual Bytes let_go(AddressRange range) = 0;

  // Hold this across fork(), so that the child does not get a copy in the middle of a change.
  virtual std::mutex& fork_lock() = 0;
};

}  // namespace ullage::store
