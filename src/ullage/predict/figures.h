// SPDX-License-Identifier: Apache-2.0
#pragma once

// From one take, recorded or evaluated, to the figures of a prediction.

#include "ullage/predict/predict.h"
#include "ullage/predict/prediction.h"
#include "ullage/predict/thresholds.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take.h"

#include <span>
#include <vector>

namespace ullage::predict {

// Of a process that is given nothing of the pool's: what is resident beside it.
struct Outside {
  Bytes program;  // the program and libraries, with the allowance
  Bytes told;     // charges, at their peak
  bool known = true;
};

// What differs from one process to the next: pages of libraries touched or not (at larger sizes other kernels run; 1.2
// MB were seen), and the kernel's own count of resident pages, which is kept per processor and added up now and then.
inline constexpr Bytes kChance = 3_MiB;

// Pool, owners, rows, and where the peak stands; the rest of the prediction is the caller's.
struct Figures {
  Prediction prediction;
  EventId peak;         // the end of the trace where it is before the first event
  bool lifted = false;  // an allowance makes the peak; without it, it would be lower
  trace::Steps steps;
  std::vector<Bytes> live;  // index: EventId; as trace::Levels has it
};
// `unseen`: live bytes at the peak that the trace does not have.
Figures figures(trace::Take take, const Outside& outside, std::span<const Allowance> allowances, Bytes unseen = {});

// The same process_peak as in figures(), with no more work than that needs.
Bytes process_peak(const trace::Take& take, const Outside& outside, std::span<const Allowance> allowances);

}  // namespace ullage::predict
