// SPDX-License-Identifier: Apache-2.0
// cuDNN's tensors, filters and recurrent networks. torch allocates its weight buffer by cuDNN's size and asks where
// each matrix is in it. So both are computed here: all matrices first, layer by layer, then all biases.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/process.h"

#include <algorithm>
#include <vector>

namespace ullage::drycard {
namespace {

struct Shape {  // of a tensor or a filter
  int type = 0;
  int format = 0;
  std::vector<int> sizes;
  std::vector<int> strides;
};

void set_shape(Shape* shape, int type, int count, const int* sizes, const int* strides) {
  shape->type = type;
  shape->sizes.assign(sizes, sizes + count);
  if (strides != nullptr) {
    shape->strides.assign(strides, strides + count);
    return;
  }
  shape->strides.assign(static_cast<std::size_t>(count), 1);
  for (int i = count - 2; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    shape->strides[at] = shape->strides[at + 1] * shape->sizes[at + 1];
  }
}

void copy_out(const std::vector<int>& from, int wanted, int* to) {
  if (to != nullptr) std::copy_n(from.begin(), std::min(from.size(), static_cast<std::size_t>(wanted)), to);
}

std::size_t width_of(int type) {
  switch (type) {
    case 1:
      return 8;  // double
    case 2:      // half
    case 9:
      return 2;  // bfloat16
    default:
      return 4;
  }
}

struct Recurrent {
  int mode = 0;  // 0 relu, 1 tanh, 2 LSTM, 3 GRU
  int bias_mode = 2;
  bool both_directions = false;
  int type = 0;
  int input = 0;
  int hidden = 0;
  int projected = 0;
  int layers = 0;

  int gates() const { return mode == 2 ? 4 : mode == 3 ? 3 : 1; }
  int directions() const { return both_directions ? 2 : 1; }
  bool projects() const { return projected > 0 && projected != hidden; }
  int out() const { return projects() ? projected : hidden; }
  int biases() const { return bias_mode == 0 ? 0 : bias_mode == 2 ? 2 : 1; }

  std::size_t inputs_of(int layer) const {
    return layer == 0 ? static_cast<std::size_t>(input)
                      : static_cast<std::size_t>(out()) * static_cast<std::size_t>(directions());
  }
  std::size_t matrices_of(int layer) const {
    const auto h = static_cast<std::size_t>(hidden);
    const std::size_t gate = h * (inputs_of(layer) + static_cast<std::size_t>(out()));
    return gate * static_cast<std::size_t>(gates()) + (projects() ? h * static_cast<std::size_t>(projected) : 0);
  }
  std::size_t biases_of_one() const {
    return static_cast<std::size_t>(biases()) * static_cast<std::size_t>(gates()) * static_cast<std::size_t>(hidden);
  }
  std::size_t all_matrices() const {
    std::size_t sum = 0;
    for (int layer = 0; layer < layers; ++layer) sum += matrices_of(layer) * static_cast<std::size_t>(directions());
    return sum;
  }
  std::size_t all() const { return all_matrices() + biases_of_one() * static_cast<std::size_t>(layers * directions()); }
};

struct Part {
  std::size_t at = 0;  // in elements
  int rows = 0;
  int columns = 0;  // 0: there is no such part
};

// Returns the place of a matrix. `pseudo` counts layers; with two directions each layer counts twice. `linear` counts
// the matrices of a layer: those of the input, then those of the hidden state, then the projection.
Part matrix_of(const Recurrent& net, int pseudo, int linear) {
  const int gates = net.gates();
  std::size_t at = 0;
  for (int i = 0; i < pseudo; ++i) at += net.matrices_of(i / net.directions());
  const auto inputs = static_cast<int>(net.inputs_of(pseudo / net.directions()));
  const auto size = [&](int columns) {
    return static_cast<std::size_t>(net.hidden) * static_cast<std::size_t>(columns);
  };
  if (linear < gates) return {at + size(inputs) * static_cast<std::size_t>(linear), net.hidden, inputs};
  at += size(inputs) * static_cast<std::size_t>(gates);
  if (linear < 2 * gates)
    return {at + size(net.out()) * static_cast<std::size_t>(linear - gates), net.hidden, net.out()};
  at += size(net.out()) * static_cast<std::size_t>(gates);
  return net.projects() ? Part{at, net.projected, net.hidden} : Part{};
}

Part bias_of(const Recurrent& net, int pseudo, int linear) {
  if (linear >= net.biases() * net.gates()) return {};
  const std::size_t at = net.all_matrices() + net.biases_of_one() * static_cast<std::size_t>(pseudo);
  return {at + static_cast<std::size_t>(linear) * static_cast<std::size_t>(net.hidden), net.hidden, 1};
}

// Fills in the shape and the address of a part. Does nothing if the caller did not ask for this part.
void describe(const Recurrent& net, const Part& part, const void* space, Shape* shape, void** place) {
  if (place == nullptr) return;
  if (part.columns == 0) {
    if (shape != nullptr) shape->sizes.clear();
    *place = nullptr;
    return;
  }
  const int sizes[3] = {1, part.rows, part.columns};
  if (shape != nullptr) set_shape(shape, net.type, 3, sizes, nullptr);
  *place = reinterpret_cast<void*>(reinterpret_cast<Address>(space) + part.at * width_of(net.type));
}

}  // namespace

ULLAGE_CARD_API int cudnnCreateTensorDescriptor(Shape** shape) {
  *shape = new Shape;
  return 0;
}
ULLAGE_CARD_API int cudnnDestroyTensorDescriptor(Shape* shape) {
  delete shape;
  return 0;
}
ULLAGE_CARD_API int cudnnSetTensorNdDescriptor(Shape* shape, int type, int count, const int* sizes,
                                               const int* strides) {
  set_shape(shape, type, count, sizes, strides);
  return 0;
}
ULLAGE_CARD_API int cudnnGetTensorNdDescriptor(const Shape* shape, int wanted, int* type, int* count, int* sizes,
                                               int* strides) {
  if (type != nullptr) *type = shape->type;
  if (count != nullptr) *count = static_cast<int>(shape->sizes.size());
  copy_out(shape->sizes, wanted, sizes);
  copy_out(shape->strides, wanted, strides);
  return 0;
}
ULLAGE_CARD_API int cudnnCreateFilterDescriptor(Shape** shape) {
  *shape = new Shape;
  return 0;
}
ULLAGE_CARD_API int cudnnDestroyFilterDescriptor(Shape* shape) {
  delete shape;
  return 0;
}
ULLAGE_CARD_API int cudnnSetFilterNdDescriptor(Shape* shape, int type, int format, int count, const int* sizes) {
  set_shape(shape, type, count, sizes, nullptr);
  shape->format = format;
  return 0;
}
ULLAGE_CARD_API int cudnnGetFilterNdDescriptor(const Shape* shape, int wanted, int* type, int* format, int* count,
                                               int* sizes) {
  if (type != nullptr) *type = shape->type;
  if (format != nullptr) *format = shape->format;
  if (count != nullptr) *count = static_cast<int>(shape->sizes.size());
  copy_out(shape->sizes, wanted, sizes);
  return 0;
}

ULLAGE_CARD_API int cudnnCreateRNNDescriptor(Recurrent** net) {
  *net = new Recurrent;
  return 0;
}
ULLAGE_CARD_API int cudnnDestroyRNNDescriptor(Recurrent* net) {
  delete net;
  return 0;
}
ULLAGE_CARD_API int cudnnSetRNNDescriptor_v8(Recurrent* net, int, int mode, int bias_mode, int direction, int, int type,
                                             int, int, int input, int hidden, int projected, int layers, void*,
                                             unsigned) {
  *net = {mode, bias_mode, direction != 0, type, input, hidden, projected, layers};
  return 0;
}
ULLAGE_CARD_API int cudnnGetRNNWeightSpaceSize(void*, const Recurrent* net, std::size_t* bytes) {
  *bytes = net->all() * width_of(net->type);
  return 0;
}
ULLAGE_CARD_API int cudnnGetRNNWeightParams(void*, const Recurrent* net, int pseudo, std::size_t, const void* space,
                                            int linear, Shape* matrix, void** matrix_at, Shape* bias, void** bias_at) {
  describe(*net, matrix_of(*net, pseudo, linear), space, matrix, matrix_at);
  describe(*net, bias_of(*net, pseudo, linear), space, bias, bias_at);
  return 0;
}
// The bytes of the workspace, and those that the layers keep for the backward pass, are not known. So 0 bytes are
// returned, and the ledger counts the call.
ULLAGE_CARD_API int cudnnGetRNNTempSpaceSizes(void*, const Recurrent*, int, void*, std::size_t* work,
                                              std::size_t* reserve) {
  ledger().unanswered_rnns.fetch_add(1);
  if (work != nullptr) *work = 0;
  if (reserve != nullptr) *reserve = 0;
  return 0;
}

}  // namespace ullage::drycard
