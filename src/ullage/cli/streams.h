// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a verb writes: the answer goes to `out`, all other messages of Ullage to `err`.

#include <iosfwd>

namespace ullage::cli {

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

}  // namespace ullage::cli
