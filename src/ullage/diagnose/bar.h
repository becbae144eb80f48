// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws the device, or what is known of it, as one bar whose parts add up exactly.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/evidence.h"

#include <optional>

namespace ullage::diagnose {

// None if the figures are too few or contradict each other. Contradictions are explained in evidence.notes.
std::optional<Bar> bar_of(const Evidence& evidence);

// "GPU 0", "NPU 3", "the CPU".
std::string device_name(const Evidence& evidence);

}  // namespace ullage::diagnose
