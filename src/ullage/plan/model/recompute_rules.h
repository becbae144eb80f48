// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which ops may be run a second time in place of keeping what they made: one table, by name, each family with its
// reason. What is not known is never guessed: it is kept or spilled. Outputs given by the caller (".out") are never
// written twice.

#include <string_view>

namespace ullage::plan {

enum class RecomputeRule {
  Plain,      // the same inputs give the same bits, and nothing else changes
  Random,     // likewise once the generator is put back to where it was
  BatchNorm,  // writes running statistics without saying so: run again without them
  Blank,      // paper to write on (empty, zeros): what is on it when it is read may come from no op at all
  Never,      // makes views, talks to the world, belongs to an extension, or is not known
};
// Whose kernels: a card has some that add up in the order in which threads come.
enum class Kernels { Processor, Card };
// `name`: "aten::native_batch_norm".
RecomputeRule recompute_rule_of(std::string_view name, Kernels kernels = Kernels::Processor);

// A name in its parts: "aten::add_.Tensor" is the base "add", in place, overload "Tensor".
struct OpName {
  std::string_view base;  // empty: of an extension
  std::string_view overload;
  bool in_place = false;
};
OpName parts_of(std::string_view name);

// Of a batch norm's forward op by name: StepOp::batch_norm may be offered. Its arguments in order: input, weight, bias,
// running mean, running variance; its results: output, saved mean, saved inverse deviation.
bool is_batch_norm(std::string_view name);

// Does it write all of its first argument without looking at it (fill_, copy_, normal_)?
bool overwrites_all(std::string_view name);

// Does it make its result of numbers in the call, of the generator or of nothing (arange, randn, zeros)?
bool makes_from_nothing(std::string_view name);

// Does it look at no bytes at all, only give other sizes and strides to its arguments?
bool is_view(std::string_view name);

// Is it one whose work is mostly a matrix product (convolution, matmul, attention, recurrent layers)?
bool is_heavy(std::string_view name);

}  // namespace ullage::plan
