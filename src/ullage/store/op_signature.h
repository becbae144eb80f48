// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the pager tells ops apart, so that it finds an earlier occurrence of an op (use_history.h).

#include <cstdint>

namespace ullage::store {

// Two hashes.
struct OpSignature {
  std::uint64_t shapes = 0;  // equal for the same op on tensors of equal types and sizes
  std::uint64_t kind = 0;    // equal for the same op on tensors of equal types and as many dimensions

  OpSignature() = default;
  OpSignature(std::uint64_t of_shapes, std::uint64_t of_kind) : shapes(of_shapes), kind(of_kind) {}
  // An op whose shapes never change.
  OpSignature(std::uint64_t of_both) : OpSignature(of_both, of_both) {}  // NOLINT(google-explicit-constructor)
};

}  // namespace ullage::store
