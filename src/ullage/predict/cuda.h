// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a CUDA run of the program would ask torch's caching allocator for, worked out from a take of the CPU by the
// rules of cuda_rules.h. cuda.cpp puts it through the allocator's model: on_cuda() of predict.h.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/predict/prediction.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ullage::predict {

struct CudaBlock {
  Bytes bytes;      // as requested; above zero
  std::size_t row;  // in CudaHistory::rows
};

// In the order in which the program makes them. Two for each block, but for those that live to the end.
struct CudaRequest {
  EventId event;  // of the take at which it is made
  std::size_t block = 0;
  bool frees = false;
};

struct CudaHistory {
  std::vector<Row> rows;  // names and sources; bytes are zero
  std::vector<CudaBlock> blocks;
  std::vector<CudaRequest> requests;
  Bytes outside;                  // the allocator; of the rows `outside_rows`
  std::vector<Row> outside_rows;  // also those of no bytes
};

// `capacity` of the card asked about, where there is one.
CudaHistory cuda_history(const trace::TraceFile& file, const trace::Take& take, std::optional<Bytes> capacity);

// The program is Python's, whose optimizers take lists on CUDA by default.
bool is_python(const trace::TraceFile& file);

}  // namespace ullage::predict
