// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the figures of a prediction, such as the peak and who holds it, from one take: the record of one run. The
// take was recorded, or computed for a size that was not run (evaluation.h).

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
  Bytes program;      // the program and libraries; outside_at() has added kChance
  Bytes charged;      // the peak of the charges: bytes that the program or an op's scratch took there, as recorded
  bool known = true;  // false: the takes do not say what the process held outside the pool; `program` is then too low
};

// An allowance, because the bytes outside the pool differ from one process to the next. At larger sizes torch may run
// other functions and touch other pages of libraries (measured: 1.2 MB). Linux keeps its count of resident pages for
// each processor and only sometimes adds these counts up, so the count itself is inexact.
inline constexpr Bytes kChance = 3_MiB;

// `prediction` has the take, the pool's and the process's bytes, owners, rows and the place of the peak. The caller
// fills in the rest.
struct Figures {
  Prediction prediction;
  bool lifted = false;  // the slack of some op raises the peak
  trace::Steps steps;
  std::vector<Bytes> live;  // index: EventId; as in trace::Levels
};
// `slack`: what ops may allocate beyond their laws (thresholds.h). `unseen`: live bytes at the peak that the trace does
// not have, because events were lost.
Figures figures(trace::Take take, const Outside& outside, std::span<const Slack> slack, Bytes unseen = {});

// The process_peak of figures() without `unseen`, computed with less work.
Bytes process_peak(const trace::Take& take, const Outside& outside, std::span<const Slack> slack);

}  // namespace ullage::predict
