// SPDX-License-Identifier: Apache-2.0
#pragma once

// The result of `ullage predict`, as data: the memory that a program will need at a size that was not run. The report
// layer writes it as text or JSON.

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
  Bound,  // the peak is at most this
  None,   // no law: the figures are of one run at the size asked for (`measured`)
};

// One row of a sum.
struct Row {
  std::string name;  // "parameters", "saved activations", "program and libraries", "CUDA context"
  Bytes bytes;
  std::string source;  // where the figure comes from; empty if it follows from the takes
};

// The outcome on a card of the stated capacity.
struct CudaAnswer {
  bool fits = false;
  std::uint64_t retries = 0;  // how often cached segments were given back to make room, which makes the program slower
  // If it does not fit: the first request that fails, as in torch's message. If only `requested` and `device_free` are
  // set, not even the CUDA context fits.
  Bytes requested, allocated, reserved, device_free;
  std::string op;  // the op that makes the request; empty if none does
};

// The figures of a card.
struct Cuda {
  Bytes allocated_peak;              // as torch.cuda.max_memory_allocated(): tensors, rounded up
  Bytes reserved_peak;               // as torch.cuda.max_memory_reserved()
  Bytes process_peak;                // as nvidia-smi shows the process
  std::optional<Bytes> capacity;     // of the card asked about
  std::optional<CudaAnswer> answer;  // set if `capacity` is
  bool calibrated = false;           // compared with a card: version and card are in docs/gpu.md
  std::vector<Row> rows;             // add up to process_peak
};

struct LargestThatFits {
  std::string knob;           // "batch"
  std::int64_t value = 0;     // 0: not even the smallest size tried fits
  Bytes process_peak;         // at that value; if none fits, at the smallest value tried
  Law law = Law::Exact;       // of process_peak
  bool more_may_fit = false;  // larger values might fit: the takes do not tell
  std::string word{};         // how the value is written on the command line, "bf16"; empty: as its number
  bool smallest = false;      // a larger value takes less memory, so `value` is the smallest that fits
  std::string needs{};        // the option that `ullage run` needs beside it, "--allow batch-norm"; empty: none
};

// The largest picture with equal sides that fits.
struct LargestSquare {
  std::vector<std::string> sides;  // knobs: "width", "height"
  LargestThatFits found;           // its knob is the first of `sides`
};

// Whether `ullage run` can keep to the memory that was asked about, if the program does not fit it without a plan.
struct PlannedFit {
  bool fits = false;
  Bytes least;  // of the process. If `fits`, no plan exists for less; else the least memory for which one was found
  double more_time = 0;                       // as a part of a plain step's; zero if it does not fit
  std::uint64_t recomputed = 0, spilled = 0;  // per step: ops that are run again, and spills of a storage
};

struct Prediction {
  std::vector<Knob> at;
  Law law = Law::Exact;
  bool measured = false;  // by a run at that size, under the pager
  std::string why;        // the reason for `law`: one line with figures
  Bytes pool_peak;        // live bytes of the pool at its peak
  Bytes slack;            // the part of pool_peak that counts only if an op takes scratch that it may or may not take
  // The part of pool_peak that follows no law and is counted in proportion, because the takes do not do the same.
  Bytes lawless;
  Bytes pool_resident_peak;
  Bytes process_peak;                // VmHWM of `ullage run`
  std::vector<Row> rows;             // add up to process_peak
  std::vector<trace::Owner> owners;  // at the peak of the pool; add up to pool_peak
  std::string peak_op;
  std::string peak_layer;       // empty if unknown
  std::string peak_phase;       // "backward", or a phase that the program names: "sampling"
  std::uint64_t peak_step = 0;  // counted from 1; 0: in no step, or in a phase that the program names
  Seconds step;                 // of one step at that size, estimated from the times of the takes
  std::vector<std::string> phases_not_seen;
  // If `memory` was given: for each knob, with the others as in `at`; and for knobs that are sides of a picture.
  std::vector<LargestThatFits> largest;
  std::optional<LargestSquare> largest_square;
  std::optional<Bytes> memory;  // of the whole program
  // What other processes of the program hold beside this one, such as a data loader's workers or other ranks: the most
  // of the takes, and more if they grew with the knob. It is an estimate.
  Bytes others;
  std::optional<PlannedFit> planned;  // set if it does not fit `memory` and there is a step to plan
  std::optional<Cuda> cuda;
  trace::Take take;  // at that size, for `explain` and `plan`
  EventId peak;      // of `take`; its end if the peak is before the first event

  // What the process may take of `memory`, which must be set.
  Bytes room() const { return saturating_sub(*memory, others); }
  bool fits() const { return process_peak <= room(); }
};

}  // namespace ullage::predict
