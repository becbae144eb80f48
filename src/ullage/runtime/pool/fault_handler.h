// SPDX-License-Identifier: Apache-2.0
#pragma once

// The handler of SIGSEGV that brings back what a thread touched while it was moved out. Everything else is none of its
// business and goes to whoever handled it before; a real segmentation fault ends the program as ever. No torch here.
//
// Why a handler may lock a mutex and read a file: the signal is raised by the faulting instruction itself, at an
// address of the pool. Neither the pager nor the C library touches such memory while it holds a lock of its own.

#include "ullage/store/pager.h"

#include <functional>

namespace ullage::runtime {

// Installs the handler, once in a process. `give_up` is called where the bytes cannot be brought back, on the thread
// that needs them; it must not return. Both must live for ever.
void install_fault_handler(store::Pager& pager, std::function<void(const store::Pager::FaultAnswer&)> give_up);

// Stands in front again after somebody installed a handler of his own, which gets what is not ours. Cheap: one system
// call. Nothing before install_fault_handler().
void reassert_fault_handler();

}  // namespace ullage::runtime
