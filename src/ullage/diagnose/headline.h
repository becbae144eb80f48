// SPDX-License-Identifier: Apache-2.0
#pragma once

// One line that says what happened, with its figures; what to record to be sure; the next command.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/evidence.h"

#include <string>
#include <vector>

namespace ullage::diagnose {

std::string headline_of(const Evidence& evidence);

// What this kind of input cannot tell, and how to record what can. Empty when the first cause is as good as proven.
std::string to_know_more(const Evidence& evidence, const std::vector<Cause>& causes);

// On a CUDA device.
std::string how_to_record();

std::string next_command(const Evidence& evidence, const std::string& file);

// What a person should know of the figures before trusting them.
std::vector<std::string> notes_of(const Evidence& evidence, const std::vector<Cause>& causes);

}  // namespace ullage::diagnose
