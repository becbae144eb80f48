// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses the optimizer that ends the steps of a program with several. A GAN has two, and its critic may be updated
// five times for each update of the generator. Edit this if the steps of such a program are miscounted.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ullage::trace {

// `counts` has the number of calls of each optimizer, in the order of their first calls, and is not empty. Returns the
// index of the smallest count, and the last such index if several are equal. An optimizer that was called only once is
// left out if any other was called more often: such a call does not show that it comes back in every step.
std::size_t rarest_call(std::span<const std::uint64_t> counts);

}  // namespace ullage::trace
