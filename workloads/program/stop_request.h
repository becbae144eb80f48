// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns Ctrl-C and SIGTERM into a request to stop at the end of the step. The second signal ends the process at once
// with exit code 130.

#include <string_view>

namespace ullage::program {

// Handles SIGINT and SIGTERM while it lives. Ignores SIGXFSZ, so that write() returns an error if a file must not grow.
// At most one may exist in a process.
class StopRequest final {
 public:
  // `said` is written to stderr at the first signal. Its characters must outlive this object.
  explicit StopRequest(std::string_view said);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool asked() const;
};

}  // namespace ullage::program
