// SPDX-License-Identifier: Apache-2.0
// In builds against a torch without CUDA.
#include "ullage/runtime/card_pool.h"

namespace ullage::runtime {

Status install_card_pool(store::Pager&, CardPoolSettings) {
  return Error{Error::Kind::System, "Ullage was built against a torch without CUDA", ""};
}

}  // namespace ullage::runtime
