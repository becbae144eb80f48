// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops of one of Ullage's own recordings as slices, a row for each thread, and what autograd saves as instants on
// them.

#include "ullage/report/chrome_trace.h"
#include "ullage/report/event_axis.h"
#include "ullage/report/input_history.h"

namespace ullage::report {

// Of a history that has a take. Rows from 1001 on. A viewer draws slices of a row within each other where they nest.
void write_ops(const InputHistory& history, const EventAxis& axis, unsigned process, ChromeTrace& out);

}  // namespace ullage::report
