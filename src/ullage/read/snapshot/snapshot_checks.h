// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a snapshot contradicts itself. None of it stops the reading: files that were edited, made by tests or taken by
// several threads still tell most of the story, and whoever reads the answer is told what does not add up.

#include "ullage/trace/recording/recording.h"

#include <string>
#include <vector>

namespace ullage::read {

// Some lines of each kind, then how many more there are.
std::vector<std::string> inconsistencies(const std::vector<trace::DeviceRecording>& devices);

}  // namespace ullage::read
