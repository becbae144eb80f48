// SPDX-License-Identifier: Apache-2.0
#pragma once

// The free parts of an address range. The lowest part that is large enough is handed out first, so that a long run
// keeps using the same addresses.
//
//   |####....####........####|        map of free parts: begin -> end; two parts never touch
//        ^lowest that is large enough

#include "ullage/drycard/card/abi.h"

#include <iterator>
#include <map>

namespace ullage::drycard {

class AddressRanges final {
 public:
  void add(Address begin, Address end) { give(begin, end - begin); }

  // Takes `size` bytes, at `wanted` if they are free there (0: anywhere), else at the lowest multiple of `alignment`
  // that has room. `alignment` is a power of two; `wanted` is not rounded to it. Returns 0 if no free part is large
  // enough.
  Address take(std::size_t size, std::size_t alignment, Address wanted = 0) {
    if (wanted != 0) {
      auto it = free_.upper_bound(wanted);
      if (it != free_.begin() && std::prev(it)->second >= wanted + size) return cut(std::prev(it), wanted, size);
    }
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const Address at = (it->first + alignment - 1) & ~(static_cast<Address>(alignment) - 1);
      if (at + size <= it->second && at >= it->first) return cut(it, at, size);
    }
    return 0;
  }

  // Makes the bytes free. None of them may be free already.
  void give(Address at, std::size_t size) {
    Address end = at + size;
    auto after = free_.lower_bound(at);
    if (after != free_.end() && after->first == end) {
      end = after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin() && std::prev(after)->second == at) {
      std::prev(after)->second = end;
    } else {
      free_[at] = end;
    }
  }

  // Returns whether everything in [begin, end) is free.
  bool is_free(Address begin, Address end) const {
    auto it = free_.upper_bound(begin);
    return it != free_.begin() && std::prev(it)->second >= end;
  }
  // Takes exactly [begin, end), which must be free.
  void remove(Address begin, Address end) { cut(std::prev(free_.upper_bound(begin)), begin, end - begin); }

 private:
  Address cut(std::map<Address, Address>::iterator part, Address at, std::size_t size) {
    const Address begin = part->first;
    const Address end = part->second;
    free_.erase(part);
    if (begin < at) free_[begin] = at;
    if (at + size < end) free_[at + size] = end;
    return at;
  }

  std::map<Address, Address> free_;
};

}  // namespace ullage::drycard
