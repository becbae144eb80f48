// SPDX-License-Identifier: Apache-2.0
#pragma once

// SHA-256 over named tensors, each read where it lies: a program that holds little memory must not need a copy of its
// whole state to compare it.

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
  // Name, type, sizes and bytes; of an undefined tensor (a gradient that was never made) the name and that it is none.
  void add(std::string_view name, const at::Tensor& tensor);

  // 64 hexadecimal digits. Ends the digest: called once, nothing may follow.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace nets
