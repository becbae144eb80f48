// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides how often a request is tried again before it is refused. The pager uses it when nothing can be evicted, and
// so do charges for bytes outside the pool.

#include <utility>

namespace ullage::store {

// The last tries of one request. Before each, a consumer outside the pool is asked to give up memory. If none gives
// anything up, one more try follows: a consumer may have given it up for another thread just before. For that try, what
// others have only announced is forgotten. Then the request is refused.
class LastTries final {
 public:
  // Returns true if the request should be tried once more, false if it should be refused. `gives_way(false)` asks the
  // consumers, and returns true if one gave something up. `gives_way(true)`, once for a request, has what was
  // announced forgotten.
  template <typename GivesWay>
  bool another(const GivesWay& gives_way) {
    if (gives_way(false)) return true;
    if (std::exchange(asked_in_vain_, true)) return false;
    gives_way(true);
    return true;
  }

 private:
  bool asked_in_vain_ = false;
};

}  // namespace ullage::store
