// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which ops may be recomputed: a table by name, in families with a reason for each. Results of ops that are not in the
// table are kept or spilled. Ops that write into outputs given by the caller (".out") are never recomputed.

#include <string_view>

namespace ullage::plan {

enum class RecomputeRule {
  Plain,      // the same inputs give the same bits, and nothing else changes
  Random,     // as Plain, if the generator is first put back to its state before the call
  BatchNorm,  // as Plain, but writes running statistics that no record shows: recomputed without them
  Blank,      // makes memory to fill in (empty, zeros): the program may write to it with no op
  Never,      // makes views, has outside effects, belongs to an extension, or is unknown
};
// Whose kernels run. Some kernels of a card add up in the order in which threads arrive.
enum class Kernels { Processor, Card };
// `name`: "aten::native_batch_norm".
RecomputeRule recompute_rule_of(std::string_view name, Kernels kernels = Kernels::Processor);

// The parts of a name: "aten::add_.Tensor" has the base "add", is in place, and has the overload "Tensor".
struct OpName {
  std::string_view base;  // empty if the namespace is not "aten"
  std::string_view overload;
  bool in_place = false;
};
OpName parts_of(std::string_view name);

// Is it the forward op of a batch norm, for which StepOp::batch_norm may exist? Its arguments in order: input, weight,
// bias, running mean, running variance. Its results: output, saved mean, saved inverse deviation.
bool is_batch_norm(std::string_view name);

// Does it write all of its first argument without reading it (fill_, copy_, normal_)?
bool overwrites_all(std::string_view name);

// Does it make its result without tensors: from numbers in the call, the generator or nothing (arange, randn, zeros)?
// True also for empty_like, full_like, ones_like and zeros_like, which take only sizes from a tensor. False for
// rand_like, randn_like and randint_like.
bool makes_from_nothing(std::string_view name);

// Does it read no bytes and only give its argument other sizes and strides?
bool is_view(std::string_view name);

// Is it known to write nothing but its results and the arguments that its schema marks as written? True for ops with
// the rule Plain or Random, for views, and for some backward ops that read weights. False for all others.
bool writes_what_it_says(std::string_view name);

// Is its work mostly a matrix product (convolution, matmul, attention, recurrent layers)?
bool is_heavy(std::string_view name);

}  // namespace ullage::plan
