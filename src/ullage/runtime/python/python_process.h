// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a Python process for Ullage, in addition to the interceptor and the saved-tensor hooks:
// - Higher-order ops (torch.cond, flex_attention) must let the interceptor's dispatch key through.
// - Kernels that inductor compiled in C++ are called with pointers, and the dispatcher does not see them. While ops are
//   followed, each runs as the op `ullage::compiled_kernel`, which the dispatcher sees. Regions with a C++ wrapper
//   announce their inputs on entry instead.
// - If a program does not report its steps, they are counted by the calls of its optimizers.
// - For a recording, the parameters of its modules are named.
// - On a card, torch.save and safetensors ask for a storage's address to tell storages apart, and copy whole storages.
//   They get the address even while the bytes are away, and the bytes come back for the copy.
//   Tensor.data_ptr(), which programs hand to kernels of their own, still fails while the bytes are away.
// - The runtime hears of each new thread of Python (on a card), of full garbage collections after a fork, and of the
//   interpreter's end.
// Python is found at run time, if it is there; nothing here is linked against it. A failure here makes an op slow,
// leaves a parameter without a name, or has an op refused. It never ends the program.

#include "ullage/base/bytes.h"

#include <functional>

namespace ullage::runtime {

// Does this process run an initialised Python interpreter?
bool in_python();

// Is torch's compiler imported only when the program asks for it (preload/defer_compiler.py)?
bool compiler_is_deferred();

// Has Python's main thread prepare Python at its next opportunity, if torch is imported. Before that, and without
// Python, does nothing and may be called again. Cheap once it is done. Any thread may call, under any lock.
void prepare_python_later();

// The functions that the following calls set must be set before Python is prepared, and must not throw.

// `touch` is called for each CPU tensor that a compiled region with a C++ wrapper is about to read. It is also called
// for each storage of a card that is about to be copied (ullage_touch() of c_api.h).
void set_touch(std::function<void(Address begin, Bytes size)> touch);

// `follows` says whether the next op of the calling thread will be followed. It is called before each compiled kernel.
void set_follows(std::function<bool()> follows);

// `recorded` is called when a compiled region's forward pass begins (true) and ends (false). Grad mode is off inside,
// but autograd records the region as a whole.
void set_recorded_as_a_whole(std::function<void(bool enters)> recorded);

// `are` is called with the number of steps so far when it changes, judged by the calls of the optimizers
// (base/optimizer_steps.h). If the number is greater than before, a step seems to have ended. It falls when an
// optimizer comes late that is called less often than those before.
void set_steps_are(std::function<void(std::uint64_t total)> are);

// `place` is called with storage._cdata, for a storage whose bytes may be away from the card. It returns the address
// that the bytes have when they are on the card. Set it on a card only.
void set_place_of_storage(std::function<Address(const void*)> place);

// `begins` is called on each new thread of Python's threading module, before it runs. Set it on a card only, together
// with set_place_of_storage(): there a thread's first op may read tensors that are away.
void set_thread_begins(std::function<void()> begins);

// `collects` is called when a full garbage collection begins (true) and ends (false), in a process that has forked or
// was made by fork. It may be called anywhere where Python allocates, so it must take no lock of the runtime's.
void set_collects(std::function<void(bool begins)> collects);

// `ends` is called when the interpreter begins to shut down (atexit): in the process that was prepared, and
// in its forked children. A child that ends by os._exit() does not call it.
void set_interpreter_ends(std::function<void()> ends);

}  // namespace ullage::runtime
