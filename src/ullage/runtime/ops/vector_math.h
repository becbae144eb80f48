// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works around an error in MKL 2024.2, which torch 2.11 to 2.13 bring along. MKL looks up the kernel of a vector
// function at its first call. If two threads make that call at once, one may compute its whole chunk with a kernel of
// half the bits. That is MKL's mode EP (enhanced performance), although torch asks for HA (high accuracy). The
// program's results then differ from run to run by 1e-4 of a value. This happens in about one start of 100 on a loaded
// machine (pytorch/pytorch issue 188792). A kernel that was looked up once is right from then on.

namespace ullage::runtime {

// Calls cos, erf, exp, log, sin, sqrt and tanh of floats, the vector functions that training uses. Each is called once,
// on one element and on this thread. Call this before several threads can call these functions together.
//
// Takes a millisecond and leaves about 5 MiB more of torch resident; any first op would touch most of them too. The
// other functions that torch takes from MKL, and those of doubles (ATen/cpu/vml.h), would take 3.5 MiB more. That is
// too much for a small budget.
void prepare_vector_math();

}  // namespace ullage::runtime
