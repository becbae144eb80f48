// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pages of files that the program has mapped for itself alone: weights that safetensors or torch.load(mmap=True) reads.
// They are not the pool's. Once an op has read them they stay in memory, although the file has the same bytes. So they
// can be let go at any time: the next touch reads them from the file again. The pager decides when (pager_files.cpp).
// Edit this to let go of another kind of pages.

#include "ullage/store/pages.h"

#include <mutex>

namespace ullage::store {

class FilePages {
 public:
  virtual ~FilePages() = default;

  // Does a mapped file lie at this address?
  virtual bool holds(Address at) const = 0;
  // The bytes of all mapped files, in memory or not.
  virtual Bytes mapped() const = 0;

  // What is in memory of a range. Addresses at which no file is mapped count nothing.
  struct Count {
    Bytes there;
    Bytes of_file;  // the part of `there` that was not written: it can be let go
  };
  virtual Count count(AddressRange range) const = 0;
  // Lets go of the pages of the range that were not written. Returns Count::of_file afterwards: zero, unless the kernel
  // refused. If another thread writes to the range meanwhile, its write is neither lost nor an error: the fault that it
  // gets is healed by trying again (Pager::on_fault()).
  virtual Bytes let_go(AddressRange range) = 0;

  // Hold this across fork(), so that the child's copy is not caught in the middle of a change.
  virtual std::mutex& fork_lock() = 0;
};

}  // namespace ullage::store
