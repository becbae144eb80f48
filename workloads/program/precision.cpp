// SPDX-License-Identifier: Apache-2.0
#include "program/precision.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
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

std::string bf16_instructions(std::string_view cpuinfo) {
  constexpr std::array<std::string_view, 2> kFlags = {"avx512_bf16", "amx_bf16"};
  std::set<std::string, std::less<>> flags;  // of the first processor; all are alike
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; flags.empty() && std::getline(lines, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(std::min(line.size(), line.find(':') + 1)));
    flags.insert(std::istream_iterator<std::string>(words), {});
  }
  std::string found;
  for (const std::string_view flag : kFlags) {
    if (flags.contains(flag)) found += (found.empty() ? "" : " and ") + std::string(flag);
  }
  return found;
}

std::string advice(Precision precision, std::string_view cpuinfo) {
  if (precision != Precision::Fp16) return "";
  const std::string has = bf16_instructions(cpuinfo);
  return "--precision fp16: on the CPU torch has no fast backward of convolutions in float16, so that a step may "
         "take a hundred times as long; bf16 takes as few bytes, and this processor has " +
         (has.empty() ? "no instructions for it (neither avx512_bf16 nor amx_bf16)"
                      : "instructions for it (" + has + ")");
}

std::string advice(Precision precision) {
  std::ifstream file("/proc/cpuinfo");
  return advice(precision, std::string(std::istreambuf_iterator<char>(file), {}));
}

Choice precision_choice(Precision asked) {
  const Precision half = asked == Precision::Fp32 ? Precision::Bf16 : asked;
  return {"precision",
          asked == Precision::Fp32 ? 32 : 16,
          {16, 32},
          {std::string(word_of(half)), std::string(word_of(Precision::Fp32))},
          "rounding"};
}

}  // namespace ullage::program
