// SPDX-License-Identifier: Apache-2.0
#pragma once

// The real cuDNN of the program's environment. From version 9.8 on it can plan for a card that is only described to it
// ("deviceless"). So engines and the sizes of their workspaces are cuDNN's own answers. It never runs anything.

#include <cstddef>
#include <cstdint>

namespace ullage::drycard {

// Its functions, with the signatures of cudnn_graph.h. Descriptors belong to the library.
struct CudnnLibrary {
  std::size_t (*version)() = nullptr;
  int (*create)(int type, void** descriptor) = nullptr;
  int (*destroy)(void* descriptor) = nullptr;
  int (*finalize)(void* descriptor) = nullptr;
  int (*set)(void* descriptor, int name, int type, std::int64_t count, const void* values) = nullptr;
  int (*get)(void* descriptor, int name, int type, std::int64_t wanted, std::int64_t* count, void* out) = nullptr;
  void* card = nullptr;  // the descriptor of this process's card
};

// Returns the library that ULLAGE_DRYCARD_CUDNN_LIBRARY names (a path of libcudnn_graph), loaded at the first call.
// Returns null if it cannot be loaded or does not accept the description of the card.
const CudnnLibrary* cudnn_library();

}  // namespace ullage::drycard
