// SPDX-License-Identifier: Apache-2.0
#pragma once

// SHA-256 over named tensors. Reads each tensor in place, so that a program with little memory can digest its whole
// state without a copy of it.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>

namespace nets {

class Digest final {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view text);
  // Adds name, type, sizes and bytes. If the tensor is undefined (a gradient that was never made), adds the name and a
  // mark for "none".
  void add(std::string_view name, const at::Tensor& tensor);

  // Returns 64 hexadecimal digits and ends the digest. Call it once, and nothing after it.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace nets
