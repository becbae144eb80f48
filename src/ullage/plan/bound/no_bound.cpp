// SPDX-License-Identifier: Apache-2.0
// lower_bound() for a build without Clp (ULLAGE_BOUND=OFF).
#include "ullage/plan/bound/bound.h"

namespace ullage::plan {

Result<Seconds> lower_bound(const Step&, const Ask&, std::size_t) {
  return Error{Error::Kind::NotFound, "this build of Ullage has no linear solver, so no lower bound is known", ""};
}

}  // namespace ullage::plan
