// SPDX-License-Identifier: Apache-2.0
#pragma once

// `--precision` of the programs: the type that layers run in. Weights stay in float32, and casts are made by autocast.
// torch_program/precision.h has the guard.

#include "ullage/base/knob.h"

#include <optional>
#include <string>
#include <string_view>

namespace ullage::program {

enum class Precision { Fp32, Bf16, Fp16 };

// "fp32", "bf16" or "fp16".
std::string_view word_of(Precision precision);
std::optional<Precision> precision_named(std::string_view word);

// "--precision int8 does not work: fp32, bf16 and fp16 do".
std::string wrong_precision(const std::string& word);

// The instructions for bf16 that a processor has, by the text of its /proc/cpuinfo: "avx512_bf16 and amx_bf16". "" if
// it has none: torch then computes bf16 by way of float32.
std::string bf16_instructions(std::string_view cpuinfo);

// Returns what a person should know before a run in this precision on a CPU whose /proc/cpuinfo has that text; "" if
// there is nothing. Without the text: on this CPU.
std::string advice(Precision precision, std::string_view cpuinfo);
std::string advice(Precision precision);

// The choice for `ullage predict`: float32, and the half precision that was asked for (bf16 if none was), by their
// bits.
Choice precision_choice(Precision asked);

}  // namespace ullage::program
