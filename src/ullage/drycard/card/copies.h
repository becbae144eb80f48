// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives small device buffers their content after a collective op of several ranks wrote them.

#include "ullage/drycard/card/abi.h"

#include <cstddef>

namespace ullage::drycard {

// Notes the result of a collective op. Every rank is assumed to send what this one sends. That holds for what programs
// compare across ranks (numbers of parameters, shapes). If this thread's last copy from the host put `bytes` bytes at
// `from`, they become the content of `times` buffers from `to` on. If not, or if it was a copy of more than 1 MiB,
// nothing happens. A buffer keeps its content until a copy reads all of it or writes at its address; a copy within a
// card takes the content along. Only the newest 64 buffers of the process keep theirs.
void hand_on(Address from, Address to, std::size_t bytes, int times);

}  // namespace ullage::drycard
