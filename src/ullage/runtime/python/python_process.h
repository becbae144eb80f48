// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Python process needs beside the hooks: higher-order ops (torch.cond, flex_attention) must let the
// interceptor's key through, compiled regions, which read their inputs past the dispatcher, say so on entry, and the
// steps of a program that does not tell them are counted by the calls of its optimizers. For a recording its modules'
// parameters are named. Python is found at run time, if it is there; nothing here is linked against it. A failure costs
// speed, a name or such an op, never the program.

#include "ullage/base/bytes.h"

#include <functional>

namespace ullage::runtime {

// This process is a Python interpreter's.
bool in_python();

// Does what is to be done, once torch is imported; until then, and without Python, it does nothing and may be called
// again. Cheap when done. Where this thread holds the interpreter lock it is done here: hold no lock of your own that
// other threads of Python may wait for.
void prepare_python();
// The same, by Python's main thread at its next call. From any thread, under any lock.
void prepare_python_later();

// Called for each CPU tensor that a compiled region is about to read (ullage_touch of c_api.h). Must not throw. Set
// before prepare_python().
void set_touch(std::function<void(Address begin, Bytes size)> touch);

// Called after the call of an optimizer that, of those in use, was called least often: as far as one can tell a step
// ended. (Of two called in turn, the first call of the first counts too.) Must not throw. Set before prepare_python().
void set_step_ended(std::function<void()> ended);

// Called as the interpreter begins to end, in the process that prepare_python() ran in and in its children by fork that
// end as a program does. Must not throw. Set before prepare_python().
void set_interpreter_ends(std::function<void()> ends);

}  // namespace ullage::runtime
