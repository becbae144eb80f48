// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which op was running at each moment of a timeline; known of Ullage's own recordings alone.

#include "ullage/report/html_timeline.h"

namespace ullage::report {

// Fills `ops` and `op_at`; leaves them empty where no ops were recorded.
void add_ops(const InputHistory& history, Timeline& timeline);

}  // namespace ullage::report
