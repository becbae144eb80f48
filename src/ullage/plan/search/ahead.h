// SPDX-License-Identifier: Apache-2.0
#pragma once

// Overlaps copies with computing. A storage that a schedule spills is written in the background, and its pages are
// freed later. A storage that it restores is read in the background, into pages that are taken earlier. Both need room
// below the budget meanwhile.
//
//   op            5      6      7      8      9           a value made by op 5, spilled after it, restored before op 9
//   as planned    | spill                    restore |
//   here          | write ahead ....... spill            its pages go when the copy should be complete
//                              read ahead .. restore |

#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// Returns `schedule` with WriteAhead and ReadAhead added where there is room. The Spill of a storage that is written
// ahead comes later than before. If `schedule` passes the verifier within `budget`, so does the result. Returns
// `schedule` as it is if it does not pass, or if the changed one would not.
Schedule with_copies_ahead(const Step& step, const Schedule& schedule, Bytes budget, const Rates& rates);

}  // namespace ullage::plan
