// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ullage::runtime {

// Calls those of MKL's vector functions that training is made of once, on one element and on this thread, before
// threads can call them together: cos, erf, exp, log, sin, sqrt and tanh of floats.
//
// MKL 2024.2, which torch 2.11 to 2.13 bring along, looks up a function's kernel at its first call. Where two threads
// make that call at once, one of them may compute its whole chunk with a kernel of half the bits (EP instead of the HA
// that torch asks for): a program then differs from itself, by 1e-4 of a value, in about one start of 100 on a loaded
// machine (pytorch/pytorch issue 188792). What is looked up once is right from then on.
//
// Takes a millisecond and leaves about 5 MiB more of torch resident, most of which any first op touches.
// The other functions that torch takes from MKL, and those of doubles (ATen/cpu/vml.h),
// would be 3.5 MiB more, which a small budget has not to give.
void prepare_vector_math();

}  // namespace ullage::runtime
