// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ullage::runtime {

// Calls each of MKL's vector functions once, on one element and on this thread, before threads can call it together.
//
// MKL 2024.2, which torch 2.11 to 2.13 bring along, looks up a function's kernel at its first call. Where two threads
// make that call at once, one of them may compute its whole chunk with a kernel of half the bits (EP instead of the HA
// that torch asks for): a program then differs from itself, by 1e-4 of a value, in about one start of 200 on a loaded
// machine (pytorch/pytorch issue 188792). What is looked up once is right from then on.
//
// Takes 3 ms and leaves 4.7 MiB more of torch's library resident.
void settle_vector_math();

}  // namespace ullage::runtime
