// SPDX-License-Identifier: Apache-2.0
#pragma once

// SHA-256, fed in pieces, so that gigabytes of state are digested without a copy.

#include "ullage/base/bytes.h"

#include <memory>
#include <string>
#include <string_view>

namespace ullage::program {

class Sha256 final {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, Bytes size);
  void update(std::string_view text) { update(text.data(), Bytes{text.size()}); }

  // Returns 64 hexadecimal digits. May be called once; update() may not follow.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace ullage::program
