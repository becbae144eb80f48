// SPDX-License-Identifier: Apache-2.0
#pragma once

// The real cuDNN of the program's environment. From version 9.8 on it plans for a card that is described to it and not
// there ("deviceless"), so engines and their workspaces are its own. It never runs anything.

#include <cstddef>
#include <cstdint>

namespace ullage::drycard {

// Its functions, which have the signatures of cudnn_graph.h. A descriptor is one of the library's own.
struct CudnnLibrary {
  std::size_t (*version)() = nullptr;
  int (*create)(int type, void** descriptor) = nullptr;
  int (*destroy)(void* descriptor) = nullptr;
  int (*finalize)(void* descriptor) = nullptr;
  int (*set)(void* descriptor, int name, int type, std::int64_t count, const void* values) = nullptr;
  int (*get)(void* descriptor, int name, int type, std::int64_t wanted, std::int64_t* count, void* out) = nullptr;
  void* card = nullptr;  // the descriptor of this process's card
};

// Null where ULLAGE_DRYCARD_CUDNN_LIBRARY names no libcudnn_graph that can be loaded and takes the description of the
// card. Loaded at the first call.
const CudnnLibrary* cudnn_library();

}  // namespace ullage::drycard
