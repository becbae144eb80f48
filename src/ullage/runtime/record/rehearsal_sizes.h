// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which takes a rehearsal is to make: "auto", or the values that somebody chose: "batch=2,3,4;size=32,48,64".

#include "ullage/base/knob.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ullage::runtime {

// Every value of each knob with every value of the others, the last knob fastest. Knobs that `text` does not name have
// the value asked for. "auto": see rehearsal() in runtime.h. Names and numbers that cannot be read are passed over: the
// text is written by the launcher of the same build.
std::vector<std::vector<Knob>> takes_of(std::string_view text, const std::vector<Knob>& asked,
                                        const std::vector<std::vector<std::int64_t>>& usual);

}  // namespace ullage::runtime
