// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program that trains, as the recorder would write it into a log. It has a parameter and an optimizer with state. Its
// forward pass saves an activation, and its backward pass makes a gradient. No tensor is allocated.

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <string>

namespace ullage::cli {

struct FakeTraining {
  enum class Kind {
    Affine,    // every size follows the batch
    Constant,  // no size follows the batch
    Lawless,   // one size is not linear in the batch
    Loops,     // an op for each sample
    Sorts,     // sorts 1000 numbers per sample; from 32,768 numbers on torch takes another path
    Convolves  // its peak is in an op that could use 4 MiB of scratch but does not
  };
  Kind kind = Kind::Affine;
  std::int64_t batch = 2;
  int steps = 3;
  bool clears = false;  // frees everything at its end, so that another training can follow in the same process
};

// Returns the live bytes at the peak of the training, which a prediction must give.
std::uint64_t peak_of(const FakeTraining& training);

// Writes the events of one training into the take that is open in `log`. The caller begins that take with its knobs.
void record(const FakeTraining& training, trace::EventLog& log);

// Returns the figures of a process that has 64 MiB outside its pool.
trace::ProcessFigures figures_of(const FakeTraining& training);

}  // namespace ullage::cli
