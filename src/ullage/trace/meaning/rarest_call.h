// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of a program's optimizers ends its steps, when it calls several: a GAN has two, a critic may run five times for
// each call of the generator's.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ullage::trace {

// `counts`: how often each optimizer was called, in the order of their first calls; one at least. Its index: of the one
// that is called least often, but twice at least if any is; of equally rare ones of that which came last at first.
std::size_t rarest_call(std::span<const std::uint64_t> counts);

}  // namespace ullage::trace
