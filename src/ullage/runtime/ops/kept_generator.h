// SPDX-License-Identifier: Apache-2.0
#pragma once

// A generator as it once was, so that an op that draws can draw the same again.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"

#include <ATen/core/Generator.h>

namespace ullage::runtime {

// The one that ops draw from that are given none: of the device that is followed.
at::Generator default_generator();

class KeptGenerator final {
 public:
  // That one takes: the 624 numbers of the processor's, which on a card are two.
  static constexpr Bytes kBytes{5 << 10};

  // As it is now.
  explicit KeptGenerator(const at::Generator& drawn_from);

  // A new one that draws what the other drew.
  at::Generator again() const;

  // The default generator as it once was, for as long as this lives. A thread that draws at this very moment would draw
  // the same.
  class InPlace final {
   public:
    explicit InPlace(const KeptGenerator& kept);
    ~InPlace();
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    at::Generator default_;
    at::Generator now_;
  };

 private:
  at::Generator kept_;
};

}  // namespace ullage::runtime
