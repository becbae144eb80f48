// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a Python process for Ullage, in addition to the interceptor and the saved-tensor hooks:
// - Higher-order ops (torch.cond, flex_attention) must let the interceptor's dispatch key through.
// - Kernels that inductor compiled in C++ are called with pointers, past the dispatcher. While ops are followed, each
//   runs as the op `ullage::compiled_kernel`. Regions with a C++ wrapper announce their inputs on entry instead.
// - If a program does not report its steps, they are counted by the calls of its optimizers.
// - For a recording, the parameters of its modules are named.
// - On a card, torch.save and safetensors ask for a storage's address to tell storages apart, and copy whole storages.
//   They get the address also while the bytes are away, and the bytes come back for the copy. Tensor.data_ptr(), which
//   programs hand to kernels of their own, still fails then.
// Python is found at run time, if it is there; nothing here is linked against it. A failure here costs speed, a name or
// such an op, but never ends the program.

#include "ullage/base/bytes.h"

#include <functional>

namespace ullage::runtime {

// Does this process run an initialised Python interpreter?
bool in_python();

// Prepares Python if torch is imported; before that, and without Python, does nothing and may be called again. Cheap
// once it is done. If this thread holds the interpreter lock, the work is done on this thread. So do not call this
// while you hold a lock that another Python thread may wait for. Otherwise as prepare_python_later().
void prepare_python();
// Has Python's main thread do the same at its next opportunity. Any thread may call, under any lock.
void prepare_python_later();

// The functions below are set before prepare_python() and must not throw.

// `touch` is called for each CPU tensor that a compiled region with a C++ wrapper is about to read. It is also called
// for each storage of a card that is about to be copied (ullage_touch() of c_api.h).
void set_touch(std::function<void(Address begin, Bytes size)> touch);

// `follows` says whether the next op of the calling thread will be followed. It is called before each compiled kernel.
void set_follows(std::function<bool()> follows);

// `recorded` is called when a compiled region's forward pass begins (true) and ends (false). Grad mode is off inside,
// but autograd records the region as a whole.
void set_recorded_as_a_whole(std::function<void(bool enters)> recorded);

// `ended` is called when a step seems to have ended: after each call of that optimizer, of those in use, which was
// called least often. (If two are called in turn, the very first call of the first one counts too.)
void set_step_ended(std::function<void()> ended);

// `place` is called with storage._cdata, for a storage whose bytes may be away from the card. It returns where they
// stand when they are there. Set it on a card only.
void set_place_of_storage(std::function<Address(const void*)> place);

// `begins` is called on each new thread of Python's threading module, before it runs. Set it on a card only, together
// with set_place_of_storage(): there a thread's first op may read tensors that are away.
void set_thread_begins(std::function<void()> begins);

// `ends` is called when the interpreter begins to shut down. That is so in the process that prepare_python() ran in,
// and in its forked children that end as a program does.
void set_interpreter_ends(std::function<void()> ends);

}  // namespace ullage::runtime
