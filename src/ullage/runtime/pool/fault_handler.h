// SPDX-License-Identifier: Apache-2.0
#pragma once

// Installs a handler of SIGSEGV that brings a storage back when a thread touches it while it is moved out. It passes
// all other faults to the handler that was installed before, so a real segmentation fault ends the program as usual.
// This header includes no torch.
//
// Why the handler may lock a mutex and read a file: the faulting instruction itself raises the signal, at an address of
// the pool. Neither the pager nor the C library touches such memory while it holds a lock of its own.

#include "ullage/store/pager.h"

#include <sys/uio.h>

#include <cstddef>
#include <functional>

namespace ullage::runtime {

// Installs the handler; call it once in a process. `give_up` is called on the faulting thread if the bytes cannot be
// brought back; it must not return. The pager and what `give_up` refers to must live for ever.
void install_fault_handler(store::Pager& pager, std::function<void(const store::Pager::FaultAnswer&)> give_up);

// Call this after a system call failed with EFAULT: if its buffers are moved out, the call fails and no signal is
// raised. Brings the storages of the buffers back and pins them, so that they stay for the next try. `written`: the
// call writes to them.
// True: the call may be tried again, and let_buffers_go() must follow on this thread.
bool hold_buffers(const iovec* buffers, std::size_t count, bool written);
void let_buffers_go();

// Installs the handler again if another one has replaced it; that one then gets the faults that are not ours. Costs one
// system call if nothing changed. No effect before install_fault_handler().
void reassert_fault_handler();

}  // namespace ullage::runtime
