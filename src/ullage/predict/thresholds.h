// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sizes at which a kernel of torch takes another path and so allocates otherwise: what was measured on one side says
// nothing of the other. One table; every row says where it was seen. A size asked for must lie on the same side as the
// takes in every row that concerns an op of theirs, or the prediction is not called exact.
//
// Beside them scratch that a kernel takes or not by a balance of its own: it is bounded instead (varying_scratch()).

#include "ullage/predict/sequence.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::predict {

// What of an op is compared with the threshold. Each has one count or more: every one must stay on its side.
enum class Quantity : std::uint8_t {
  Dimensions,      // each size of each tensor
  Elements,        // of each tensor that the op reads or writes
  Reduced,         // likewise, of an op that makes a tensor of one element and no view; else none
  Batch,           // the first size of the first tensor read
  PointwiseBatch,  // likewise, of a convolution with a kernel of one pixel; else none
  LonePicture,     // elements of the first tensor, where its batch is 1; else zero
  Tokens,          // the third size of each tensor of four
  Kernel,          // the sides of a convolution's weights
  Features,        // elements behind the first size of each tensor of two sizes or more
  Rows,            // the size before the last of each tensor
};

// The name of an op without its overload: "aten::sum" of "aten::sum.dim_IntList".
std::string_view base_name(std::string_view op);
// Whether such a name stands in a list of names with blanks between; "*": every one does.
bool listed(std::string_view list, std::string_view op);

enum class When : std::uint8_t { Always, ManyThreads, OneThread, WithoutOneDnn };

struct Rule {
  std::string_view ops;  // "aten::sort aten::argsort": names without overloads; "*": all
  Quantity quantity;
  std::int64_t threshold;  // the first count on the far side; kThreads, kEvery: see there
  When when;
  std::string_view says;
  std::string_view source;  // a file of torch or oneDNN, or where it was measured
};
inline constexpr std::int64_t kThreads = -1;  // as many as torch computes with
inline constexpr std::int64_t kEvery = -2;    // each count is a side of its own: there is no law

std::span<const Rule> rules();
// The counts of an op that a rule looks at, in the same order for every take.
std::vector<std::int64_t> counts_of(const trace::OpDetail& op, Quantity quantity);

// One op whose takes lie on the other side than the target, or on both.
struct Crossing {
  std::string op;
  OpId at;           // in take 0
  std::string rule;  // "a reduction to one element by several threads takes two passes from 32,768 elements on"
  std::int64_t threshold = 0;
  std::int64_t least = 0, most = 0;  // of the takes
  std::int64_t target = 0;
  std::size_t row = 0;    // in rules()
  std::size_t count = 0;  // which of the op's counts
};

// `target` is at() of the sequence. Empty: all on one side. At most one for each op.
std::vector<Crossing> crossings(const trace::TraceFile& file, const Sequence& sequence, const trace::Take& target);

// Values of each knob, as many as there are now, that lie on the target's side of every crossing, as small as can be,
// in the steps of the present ones, and with the target's remainder by that step (a side that strides halve four
// times). None where there are no such values below the target, or where they are those there are.
std::optional<Grid> other_sizes(const trace::TraceFile& file, const Sequence& sequence,
                                std::span<const Crossing> crossings, const std::vector<Knob>& target);

// Threads that torch computes with; where a take does not know, 2.
std::uint32_t threads_of(const trace::Take& take);

// The most that blocks born and freed within this op add up to whose being there and whose sizes follow no law: buffers
// that kernels take by a balance of their own (scratch.cpp has the list). Zero: it has none. What of an op of a take is
// off the law must not be more than this; an op of the target may take so much on top of what the law tells.
Bytes varying_scratch(const trace::Take& take, OpId op);

struct Allowance {
  OpId at;
  Bytes bytes;
};
// Of each op of the target for which there is any. What depends on the sides of pictures or the tokens alone, and not
// on the batch, is told by takes of the same sides.
std::vector<Allowance> allowances(const trace::TraceFile& file, const Sequence& sequence, const trace::Take& target);

}  // namespace ullage::predict
