// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out the takes of a rehearsal from what the launcher asks for. That is "auto", or values that the person chose,
// such as "batch=2,3,4;size=32,48,64".

#include "ullage/base/knob.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ullage::runtime {

// Returns every combination of the knobs' values; the last knob varies fastest. A knob that `text` does not name has
// the value in `asked`. "auto": see RehearsalOffer::usual in runtime.h. Names and numbers that cannot be read are
// skipped, because the launcher of the same build writes the text.
std::vector<std::vector<Knob>> takes_of(std::string_view text, const std::vector<Knob>& asked,
                                        const std::vector<std::vector<std::int64_t>>& usual);

}  // namespace ullage::runtime
