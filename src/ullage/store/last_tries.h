// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace ullage::store {

// The last tries of one request, after which it is refused. Before each, a consumer outside the pool is asked to give
// up memory. If none does, one more try follows: another thread's request may have been given the room just before.
class LastTries final {
 public:
  // `gives_way()` returns true if a consumer gave something up. False: refuse the request.
  template <typename GivesWay>
  bool another(const GivesWay& gives_way) {
    return gives_way() || !std::exchange(asked_in_vain_, true);
  }

 private:
  bool asked_in_vain_ = false;
};

}  // namespace ullage::store
