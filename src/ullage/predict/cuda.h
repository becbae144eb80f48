// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the requests that a CUDA run of the program would make to torch's caching allocator, from a CPU take and the
// rules of cuda_rules.h. on_cuda() (predict.h, cuda.cpp) sends these requests through the allocator's model.

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
  std::size_t row;  // index in CudaHistory::rows
};

// Each block has two requests, or one if it lives to the end.
struct CudaRequest {
  EventId event;  // of the take, at which the request is made
  std::size_t block = 0;
  bool frees = false;
};

struct CudaHistory {
  std::vector<Row> rows;  // names and sources; bytes are zero
  std::vector<CudaBlock> blocks;
  std::vector<CudaRequest> requests;  // in the order in which the program makes them
  Bytes outside;                      // bytes of the card outside the allocator; the sum of `outside_rows`
  std::vector<Row> outside_rows;      // includes rows of zero bytes, for what is not known
};

// `capacity` is that of the card asked about, if any.
CudaHistory cuda_history(const trace::TraceFile& file, const trace::Take& take, std::optional<Bytes> capacity);

// Is the program written in Python? Python's optimizers use lists of parameters on CUDA by default.
bool is_python(const trace::TraceFile& file);

}  // namespace ullage::predict
