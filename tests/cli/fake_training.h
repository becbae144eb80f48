// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program that trains, as the recorder would have seen it: a parameter, a forward pass that saves an activation, a
// backward pass that makes a gradient, an optimizer with state; three steps of it. No tensor exists.

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <string>

namespace ullage::cli {

struct FakeTraining {
  enum class Kind {
    Affine,    // every size follows the batch
    Constant,  // no size does
    Lawless,   // one size does in a way that is on no line
    Sorts,     // 1000 numbers a sample: torch takes another path from 32,768 of them on
    Convolves  // its peak is in an op that may take 4 MiB of scratch, and does not
  };
  Kind kind = Kind::Affine;
  std::int64_t batch = 2;
  int steps = 3;
  bool clears = false;  // at its end nothing is left of it, and another can begin in the same process
};

// Live bytes at the peak of such a training: what a prediction must say.
std::uint64_t peak_of(const FakeTraining& training);

// One take; the log's events so far belong to it.
void record(const FakeTraining& training, trace::EventLog& log);

// The figures of a process of 64 MiB beside its tensors.
trace::ProcessFigures figures_of(const FakeTraining& training);

}  // namespace ullage::cli
