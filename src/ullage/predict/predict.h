// SPDX-License-Identifier: Apache-2.0
#pragma once

// The entry point of the layer: predicts what a program needs at one size from takes at small sizes. If the takes do
// not suffice, the answer says which sizes to run instead. Nothing here uses torch or runs a program.

#include "ullage/base/result.h"
#include "ullage/predict/prediction.h"
#include "ullage/predict/sequence.h"
#include "ullage/predict/thresholds.h"
#include "ullage/sim/caching_settings.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ullage::predict {

struct CudaQuestion {
  std::optional<Bytes> capacity;    // if set, the answer says whether the program fits
  sim::CachingSettings settings{};  // of the caching allocator
};

struct Question {
  std::vector<Knob> at;
  std::optional<Bytes> memory;  // if set, the largest value of each knob that fits it is searched for
  std::optional<CudaQuestion> cuda;
  // If the takes do not do the same, an answer from what they have in common will do (common_part.h).
  bool from_common_part = false;
};

// The takes do not suffice for a prediction. `other` are sizes whose takes should suffice. If it is empty, only a run
// at the size itself gives the answer.
struct NeedsTakes {
  // One line: the first difference, a size that follows no law, a threshold between the takes and the target, or
  // scratch without a bound.
  std::string why;
  std::optional<Grid> other;
};

// Answers from the takes. If they do not suffice, but one of them is at the size asked for, that take is the answer
// (of_take()). BadArgument in four cases. The target does not name exactly the knobs of the takes. One of its knobs is
// below that knob's smallest value in the takes. A knob has one value in all takes, and the target has another. Or
// compare() (sequence.h) refuses the takes.
Result<std::variant<Prediction, NeedsTakes>> predict(const trace::TraceFile& takes, const Question& question);

// The figures of one take as it is (Law::None, measured). Does not look for the largest value that fits.
Prediction of_take(const trace::TraceFile& file, const trace::Take& take, const Question& question);

// The figures of a card for a take of the CPU, by the rules of cuda_rules.h.
Cuda on_cuda(const trace::TraceFile& file, const trace::Take& take, const CudaQuestion& question);

}  // namespace ullage::predict
