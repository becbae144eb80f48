// SPDX-License-Identifier: Apache-2.0
#pragma once

// From takes at small sizes to what the program needs at another one; no torch, no program is run here. What cannot be
// told from the takes says what should be run instead.

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
  std::optional<Bytes> capacity;    // none: only what would be needed
  sim::CachingSettings settings{};  // of the allocator
};

struct Question {
  std::vector<Knob> at;
  std::optional<Bytes> memory;  // of a machine: the largest value of each knob that fits is looked for
  std::optional<CudaQuestion> cuda;
};

// The takes do not tell. `other` are sizes that would, where there are such; else only a run at the size itself will.
struct NotTold {
  std::string why;  // one line: the first difference, the size off its law, the threshold in between
  std::optional<Grid> other;
};

// BadArgument: knobs that the takes do not have, a target below the smallest take, takes that are no grid.
Result<std::variant<Prediction, NotTold>> predict(const trace::TraceFile& takes, const Question& question);

// The figures of one take as it is: of a run at the very size (Law::None, measured), or to compare.
Prediction of_take(const trace::TraceFile& file, const trace::Take& take, const Question& question);

// cuda.h has the rules; the take is of a CPU.
Cuda on_cuda(const trace::TraceFile& file, const trace::Take& take, const CudaQuestion& question);

}  // namespace ullage::predict
