// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a verb writes: what was asked for goes to `out`, what Ullage has to say beside it to `err`.

#include <iosfwd>

namespace ullage::cli {

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

}  // namespace ullage::cli
