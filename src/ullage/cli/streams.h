// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a verb writes: the answer goes to `out`, all other messages of Ullage to `err`. If stdout belongs to a
// program that the verb runs (run, and explain with a command), all goes to `err`.

#include <iosfwd>

namespace ullage::cli {

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

}  // namespace ullage::cli
