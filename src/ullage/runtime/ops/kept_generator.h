// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies the state of a random generator, so that an op that draws can draw the same numbers again.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"

#include <ATen/core/Generator.h>

namespace ullage::runtime {

// The default generator of the followed device. Ops draw from it if they are given none.
at::Generator default_generator();

class KeptGenerator final {
 public:
  // The memory that one kept state counts as. It takes less: 624 numbers of 4 bytes for the CPU's generator, two for a
  // card's (the seed and the offset).
  static constexpr Bytes kBytes{5 << 10};

  // Keeps the state that `drawn_from` has now.
  explicit KeptGenerator(const at::Generator& drawn_from);

  // Returns a new generator that draws the same numbers as `drawn_from` did after its state was kept.
  at::Generator again() const;

  // Puts the kept state into the default generator, for as long as the object lives. Then the generator gets back the
  // state that it had before. If another thread draws from it meanwhile, that thread gets numbers that were drawn
  // before.
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
