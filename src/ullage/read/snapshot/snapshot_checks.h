// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds where a snapshot contradicts itself. No contradiction stops the reading: a file that was edited, made by a test
// or taken while threads ran still has most of the facts. The report then lists what does not add up.

#include "ullage/trace/recording/recording.h"

#include <string>
#include <vector>

namespace ullage::read {

// Returns up to three lines for each kind of contradiction, then the number of the others. Each device's segments must
// be sorted by address.
std::vector<std::string> inconsistencies(const std::vector<trace::DeviceRecording>& devices);

}  // namespace ullage::read
