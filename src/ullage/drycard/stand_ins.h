// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a stub library (elf/stub_library.h), a stand-in, for every CUDA library that a CUDA build of torch, or a
// package beside it, is linked to. libcuda and NVML get a stub too, because programs open them with dlopen. A stub has
// the functions and versions that the shared objects import. With LD_PRELOAD the stubs come before the real libraries,
// wherever these are, because they have the same SONAMEs. Edit this if a new torch or package wants something of CUDA
// that no stub has.

#include "ullage/base/result.h"

#include <cstddef>
#include <string>
#include <vector>

namespace ullage::drycard {

struct StandIn {
  std::string soname;                 // "libcublas.so.13"
  std::string path;                   // path of the stub library
  std::vector<std::string> versions;  // the wanted versions, sorted by name
  std::size_t stubs = 0;              // functions that only report that they were called, and variables of zeros
  std::size_t implemented = 0;        // wanted functions that the dry card's library exports
};

// A shared object of another package that is linked to another CUDA than torch. It has stand-ins too. Some structs have
// another layout in each CUDA, and the dry card writes those of torch's.
struct OtherMajor {
  std::string path;
  int cuda_major = 0;
};

struct StandIns {
  std::vector<std::string> preload;  // for LD_PRELOAD, in this order: the dry card's library, then the stubs
  int cuda_major = 0;                // 13 for libcudart.so.13; 0 if nothing in torch's folder needs a libcudart
  int cudnn_major = 0;               // 9 for libcudnn.so.9; 0 if nothing in torch's folder needs a libcudnn
  std::vector<StandIn> libraries;    // by soname
  std::vector<OtherMajor> other_majors;
  std::vector<std::string> notes;  // which parts were left out and why, one line each
};

struct StandInRequest {
  std::string torch_lib_folder;  // site-packages/torch/lib
  std::string out_folder;        // is created if it does not exist; files of the same names are replaced
  std::string drycard_library;   // exports the implemented functions and ullage_drycard_unknown
  // Shared objects of other packages that may be linked to CUDA too, or folders with some at any depth. The stubs then
  // have the symbols that these import as well, from whatever CUDA. In a folder only files count that the loader takes
  // and that need a CUDA library; torch's own folder in it is passed over.
  std::vector<std::string> others;
  std::vector<std::string> real{};  // sonames of real libraries that need no card: they get no stub
};

// Makes the stubs. Leaves out files that `others` names, with a note, if they are damaged or built for another machine.
// NotFound if a folder or file does not exist. BadArgument if there is no CUDA build of
// torch, if it is not for x86-64, or if LD_PRELOAD cannot name a path. BadFile for a damaged shared object in torch's
// folder. System if the out folder cannot be written.
Result<StandIns> make_stand_ins(const StandInRequest& request);

}  // namespace ullage::drycard
