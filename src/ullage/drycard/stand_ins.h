// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stand-ins for every CUDA library that a CUDA build of torch is linked to, made on the user's machine: a stub library
// (elf/stub_library.h) for each, with the names and versions that torch's shared objects want. With LD_PRELOAD they
// come before the real ones, wherever those are, because they have their SONAMEs.

#include "ullage/base/result.h"

#include <cstddef>
#include <string>
#include <vector>

namespace ullage::drycard {

struct StandIn {
  std::string soname;                 // "libcublas.so.13"
  std::string path;                   // of the stub library
  std::vector<std::string> versions;  // that are wanted, in the order of their names
  std::size_t stubs = 0;              // functions that only report their call
  std::size_t implemented = 0;        // functions wanted of it that the dry card's library exports
};

struct StandIns {
  std::vector<std::string> preload;  // for LD_PRELOAD, in this order: the dry card's library, then the stubs
  int cuda_major = 0;                // 13 for libcudart.so.13; 0 if nothing in torch's folder needs a libcudart
  std::vector<StandIn> libraries;    // by soname
  std::vector<std::string> notes;    // what was left out, and why; one line each
};

struct StandInRequest {
  std::string torch_lib_folder;     // site-packages/torch/lib
  std::string out_folder;           // is made if it is not there; files of the same names are replaced
  std::string drycard_library;      // exports what is implemented, and ullage_drycard_unknown
  std::vector<std::string> others;  // shared objects of other packages, or folders that hold some at any depth
  std::vector<std::string> real{};  // sonames of libraries that are there and need no card: they get no stub
};

// Files of `others` that are damaged, for another machine or for another CUDA than torch's are left out with a note.
// NotFound: a folder or file that is not there. BadArgument: no CUDA build of torch, or one not for x86-64; a path that
// LD_PRELOAD cannot name. BadFile: a damaged shared object in torch's folder. System: the out folder cannot be written.
Result<StandIns> make_stand_ins(const StandInRequest& request);

}  // namespace ullage::drycard
