// SPDX-License-Identifier: Apache-2.0
#pragma once

// What small buffers of a card hold where a collective of several ranks wrote them.

#include "ullage/drycard/card/abi.h"

#include <cstddef>

namespace ullage::drycard {

// A collective's result: all ranks are taken to send what this one does, which holds for what programs check across
// ranks (numbers of parameters, shapes). If this thread copied the `bytes` at `from` there last, from the host, they
// are also the content of the `times` buffers from `to` on, each until it is read once.
void hand_on(Address from, Address to, std::size_t bytes, int times);

}  // namespace ullage::drycard
