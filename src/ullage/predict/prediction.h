// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program will need at a size that was not run: `ullage predict`. A value, written by report as text or JSON.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/take/take.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::predict {

enum class Law {
  Exact,  // the same sequence at every size tried, every size on its polynomial, no known threshold in between
  Bound,  // the peak cannot be above it
  None,   // no law: the figures are of one run at the very size asked for (`measured`)
};

// One row of the sum; the rows add up to what they are rows of.
struct Row {
  std::string name;  // "parameters", "saved activations", "program and libraries", "CUDA context"
  Bytes bytes;
  std::string source;  // where a figure that was not measured here comes from; else empty
};

// What a card of the capacity asked about would say to the program.
struct CudaAnswer {
  bool fits = false;
  std::uint64_t retries = 0;  // times that cached segments were given back to make room; it fits, but slower
  // Where it does not fit: the request that fails first, as torch's message would tell it. All zero but `requested` and
  // `device_free`: not even the CUDA context fits.
  Bytes requested, allocated, reserved, device_free;
  std::string op;  // that asks for it; empty: none
};

// A card that is asked about.
struct Cuda {
  Bytes allocated_peak;              // by tensors, rounded up, as torch.cuda.max_memory_allocated says
  Bytes reserved_peak;               // max_memory_reserved
  Bytes process_peak;                // as nvidia-smi shows the process
  std::optional<Bytes> capacity;     // of the card asked about
  std::optional<CudaAnswer> answer;  // where there is a capacity
  bool calibrated = false;           // compared with a card: version and card are in docs/gpu.md
  std::vector<Row> rows;             // add up to process_peak
};

struct LargestThatFits {
  std::string knob;             // "batch"
  std::int64_t value = 0;       // 0: not even one
  Bytes process_peak;           // at that value
  Law law = Law::Exact;         // of the figure at that value
  bool not_told_above = false;  // larger ones might fit: the takes do not tell of them
};

// A picture whose sides are all as long.
struct LargestSquare {
  std::vector<std::string> sides;  // knobs: "width", "height"
  LargestThatFits found;           // its knob: the first of them
};

// Whether `ullage run` can keep to the memory that was asked about, where the program does not fit it plainly.
struct PlannedFit {
  bool fits = false;
  Bytes least;                                // memory of the process for which a plan was found, or a bound on it
  double more_time = 0;                       // of a plain step's; zero where it does not fit
  std::uint64_t recomputed = 0, spilled = 0;  // values that are made again, that are moved out
};

struct Prediction {
  std::vector<Knob> at;
  Law law = Law::Exact;
  bool measured = false;  // by a run at that size, under the pager
  std::string why;        // the law is what it is: one line with figures
  Bytes pool_peak;        // live bytes of the pool at its peak
  Bytes slack;            // of that, only because scratch that is not sure to be taken may make another peak
  Bytes pool_resident_peak;
  Bytes process_peak;                // VmHWM of `ullage run`
  std::vector<Row> rows;             // add up to process_peak
  std::vector<trace::Owner> owners;  // at the peak of the pool; add up to pool_peak
  std::string peak_op;
  std::string peak_layer;       // empty: not known
  std::string peak_phase;       // "backward", or of the program's own phases: "sampling"
  std::uint64_t peak_step = 0;  // counted from 1; 0: in no step
  Seconds step;                 // of one step at that size, from the times of the takes; only an estimate
  std::vector<std::string> phases_not_seen;
  // Where `memory` was asked for: of each knob, the others as they are in `at`; and of knobs that are sides.
  std::vector<LargestThatFits> largest;
  std::optional<LargestSquare> largest_square;
  std::optional<Bytes> memory;
  std::optional<PlannedFit> planned;  // where it does not fit `memory`, and there is a step to plan
  std::optional<Cuda> cuda;
  trace::Take take;  // at that size: what explain and plan would be shown
};

}  // namespace ullage::predict
