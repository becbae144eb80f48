// SPDX-License-Identifier: Apache-2.0
#pragma once

// Thresholds: sizes at which a kernel of torch switches to another algorithm and allocates other memory. Recorded runs
// (takes) on one side of a threshold say nothing about the other side. All thresholds are in one table
// (threshold_rules.cpp); every row names its source. Nothing is predicted unless the takes and the target lie on the
// same side in every row that concerns one of their ops. To add a threshold, add a row.
//
// Some kernels decide by a cost estimate of their own whether to allocate scratch. That has no threshold; such scratch
// is bounded instead (varying_scratch()).

#include "ullage/predict/sequence.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::predict {

// Which counts of an op are compared with a threshold. Each count must be on the target's side.
enum class Quantity : std::uint8_t {
  Dimensions,      // each size of each tensor
  Elements,        // elements of each tensor that the op reads or writes
  Batch,           // the first size of the first tensor read
  PointwiseBatch,  // the same if the op reads a tensor of 1 x 1 pixel, such as a convolution's weights; else zero
  LonePicture,     // for a batch of one picture: elements of the first tensor read; else zero
  Kernel,          // the sides of a convolution's weights, in pixels
  Features,        // for each tensor of rank 2 or more, the product of all sizes but the first
  Rows,            // for each tensor of rank 2 or more, the last size but one
};

// The name of an op without its overload: "aten::sum" for "aten::sum.dim_IntList".
std::string_view base_name(std::string_view op);
// Is the name in a list of names separated by spaces? Always true if the list is "*".
bool listed(std::string_view list, std::string_view op);

// When a rule applies: by the number of threads that torch computes with, or by whether torch uses oneDNN.
enum class When : std::uint8_t { Always, ManyThreads, OneThread, WithoutOneDnn };

struct Rule {
  std::string_view ops;  // as for listed(); names without overloads
  Quantity quantity;
  std::int64_t threshold;  // the first count on the far side, or kThreads or kEvery
  When when;
  std::string_view says;
  std::string_view source;  // a file of torch or oneDNN, or where it was measured
};
inline constexpr std::int64_t kThreads = -1;  // the threshold is the number of threads that torch computes with
inline constexpr std::int64_t kEvery = -2;    // takes and target must have the same count: bytes follow no law (law.h)

std::span<const Rule> rules();
// Has the op a threshold of its own, beside those that all ops have?
bool has_threshold(const trace::Op& op);
// The counts of an op that a rule compares, in the same order for every take.
std::vector<std::int64_t> counts_of(const trace::OpDetail& op, Quantity quantity);

// One op that has some take and the target on different sides of a threshold.
struct Crossing {
  std::string op;
  OpId at;           // in take 0
  std::string rule;  // Rule::says: "32,768 integers or more are sorted by radix, with buffers"
  std::int64_t threshold = 0;
  std::int64_t least = 0, most = 0;  // counts of the takes
  std::int64_t target = 0;           // count of the target
  std::size_t row = 0;               // index in rules()
  std::size_t count = 0;             // index of the count among counts_of() the op
};

// Returns at most one crossing for each op; empty if all takes are on the target's side. `target` is the take that at()
// (sequence.h) or evaluate_take() (evaluation.h) computed, or a take of only its first ops (parting.h).
std::vector<Crossing> crossings(const trace::TraceFile& file, const Sequence& sequence, const trace::Take& target);

// Returns values of the knobs to record instead: as many as now, on the target's side of every crossing, and as small
// as possible. The distance between two new values is the least distance between two present ones. When divided by that
// distance, all new values leave the same remainder as the target. Takes of 32, 48, 64 and a target of 100 give 36, 52,
// 68. Layers with strides halve a side and round, so only sides with the same remainder follow one law. Nothing if
// there are no such values below the target, or they are the present ones.
std::optional<Grid> other_sizes(const trace::TraceFile& file, const Sequence& sequence,
                                std::span<const Crossing> crossings, const std::vector<Knob>& target);

// The number of threads that torch computes with. If the take does not have it: 2, so that the rules for several
// threads apply.
std::uint32_t threads_of(const trace::Take& take);

// The most bytes of scratch that this op may take and that follow no law. Its kernel decides by its own cost estimate
// whether it takes such buffers (scratch.cpp). Zero if it has none. It is used twice. When takes are compared, scratch
// of the op up to this many bytes may be ignored (varying_blocks.h). At the target, the op may take this much beyond
// what the laws give.
Bytes varying_scratch(const trace::Take& take, OpId op);

// Bytes that an op may take beyond what the laws give: scratch that follows no law, at its most.
struct Slack {
  OpId at;
  Bytes bytes;
};
// Returns the slack of each op of the target that needs one. Some scratch depends only on the sides of pictures or on
// the number of tokens. If every take has the target's, that scratch was recorded and needs no slack.
std::vector<Slack> slack_of_ops(const trace::TraceFile& file, const Sequence& sequence, const trace::Take& target);

}  // namespace ullage::predict
