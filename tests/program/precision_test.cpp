// SPDX-License-Identifier: Apache-2.0
#include "program/precision.h"

#include <gtest/gtest.h>

namespace ullage::program {
namespace {

constexpr const char* kHas = "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu avx512f avx512_bf16\n";
constexpr const char* kHasBoth = "flags\t\t: fpu amx_bf16 avx512_bf16 avx512f\n\nprocessor\t: 1\n";
constexpr const char* kHasNone = "model name\t: avx512_bf16\nflags\t\t: fpu avx2 avx512f avx512_bf16x\n";

TEST(Precision, InstructionsForBf16AreReadFromTheProcessorsFlags) {
  EXPECT_EQ(bf16_instructions(kHas), "avx512_bf16");
  EXPECT_EQ(bf16_instructions(kHasBoth), "avx512_bf16 and amx_bf16");
  EXPECT_EQ(bf16_instructions(kHasNone), "");
  EXPECT_EQ(bf16_instructions(""), "");
  EXPECT_EQ(bf16_instructions("flags"), "");
}

TEST(Precision, AdviceSaysWhatIsTrueOfTheProcessor) {
  const std::string begin =
      "--precision fp16: on the CPU torch has no fast backward of convolutions in float16, so that a step may take a "
      "hundred times as long; bf16 takes as few bytes, and this processor has ";
  EXPECT_EQ(advice(Precision::Fp16, kHas), begin + "instructions for it (avx512_bf16)");
  EXPECT_EQ(advice(Precision::Fp16, kHasNone), begin + "no instructions for it (neither avx512_bf16 nor amx_bf16)");
  EXPECT_EQ(advice(Precision::Bf16, kHasNone), "");
  EXPECT_EQ(advice(Precision::Fp32, kHas), "");
}

}  // namespace
}  // namespace ullage::program
