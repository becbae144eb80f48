// SPDX-License-Identifier: Apache-2.0
#include "program/precision.h"

#include <array>
#include <utility>

namespace ullage::program {
namespace {

constexpr std::array<std::pair<std::string_view, Precision>, 3> kWords = {
    {{"fp32", Precision::Fp32}, {"bf16", Precision::Bf16}, {"fp16", Precision::Fp16}}};

}  // namespace

std::string_view word_of(Precision precision) {
  for (const auto& [word, value] : kWords) {
    if (value == precision) return word;
  }
  return "";
}

std::optional<Precision> precision_named(std::string_view word) {
  for (const auto& [name, value] : kWords) {
    if (name == word) return value;
  }
  return std::nullopt;
}

std::string wrong_precision(const std::string& word) {
  return "--precision " + word + " does not work: fp32, bf16 and fp16 do";
}

std::string advice(Precision precision) {
  if (precision != Precision::Fp16) return "";
  return "--precision fp16: on the CPU torch has no fast backward of convolutions in float16, so that a step may "
         "take a hundred times as long; bf16 takes as few bytes and is fast";
}

Choice precision_choice(Precision asked) {
  const Precision half = asked == Precision::Fp32 ? Precision::Bf16 : asked;
  return {"precision",
          asked == Precision::Fp32 ? 32 : 16,
          {16, 32},
          {std::string(word_of(half)), std::string(word_of(Precision::Fp32))}};
}

}  // namespace ullage::program
