// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the figures of a prediction from one take, recorded or evaluated.

#include "ullage/predict/predict.h"
#include "ullage/predict/prediction.h"
#include "ullage/predict/thresholds.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take.h"

#include <span>
#include <vector>

namespace ullage::predict {

// The bytes that the process holds outside the pool.
struct Outside {
  Bytes program;      // the program and libraries, with kChance
  Bytes charged;      // the peak of the charges: bytes that the program or an op's scratch took there, as recorded
  bool known = true;  // false: the takes do not say what the process held outside the pool; `program` is then too low
};

// By how much the outside differs from one process to the next. At larger sizes other kernels run and touch other pages
// of libraries (measured: 1.2 MB). The kernel's count of resident pages is kept per processor and only sometimes added
// up.
inline constexpr Bytes kChance = 3_MiB;

// `prediction` has the take, pool, owners, rows and the place of the peak; the caller fills in the rest.
struct Figures {
  Prediction prediction;
  EventId peak;         // the end of the trace if the peak is before the first event
  bool lifted = false;  // slack raises the peak
  trace::Steps steps;
  std::vector<Bytes> live;  // index: EventId; as in trace::Levels
};
// `unseen`: live bytes at the peak that the trace does not have, because events were lost.
Figures figures(trace::Take take, const Outside& outside, std::span<const Slack> slack, Bytes unseen = {});

// The process_peak of figures() without `unseen`, computed with less work.
Bytes process_peak(const trace::Take& take, const Outside& outside, std::span<const Slack> slack);

}  // namespace ullage::predict
