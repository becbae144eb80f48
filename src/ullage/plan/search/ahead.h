// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hides copies behind computing: what a schedule spills is written in the background before its pages go, what it
// restores is read in the background into pages that are taken a little earlier, where the level leaves room for that.
//
//   op            5      6      7      8      9           a value made by op 5, spilled after it, restored before op 9
//   as planned    | spill                    restore |
//   here          | write ahead ....... spill            its pages go when the copy should be there
//                              read ahead .. restore |

#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// `schedule` passes the verifier within `budget`; so does the answer, which has the same actions and these besides, and
// may spill later. Where there is no room it is as it was.
Schedule with_copies_ahead(const Step& step, const Schedule& schedule, Bytes budget, const Rates& rates);

}  // namespace ullage::plan
