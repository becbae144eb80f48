// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides the device's memory, or what is known of it, into the parts of Diagnosis::bar. They add up exactly. Edit
// bar.cpp to name a part differently or to show another one; report draws the bar.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/evidence.h"

#include <optional>

namespace ullage::diagnose {

// None if the figures are too few or contradict each other. evidence.notes explains the contradictions of a message,
// notes_of() (headline.h) those of a recording.
std::optional<Bar> bar_of(const Evidence& evidence);

// "GPU 0", "NPU 3", "the CPU"; "the device" or "Apple's GPU" if no number is known.
std::string device_name(const Evidence& evidence);

}  // namespace ullage::diagnose
