// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ctrl-C and SIGTERM as a wish to stop at the end of the step; the second one ends the process at once with 130.

#include <string_view>

namespace ullage::program {

// Takes over SIGINT and SIGTERM for its life, and ignores SIGXFSZ so that a file that may not grow is an error of
// write(). One at a time in a process.
class StopRequest final {
 public:
  // `said` is written to stderr at the first signal; it outlives this.
  explicit StopRequest(std::string_view said);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool asked() const;
};

}  // namespace ullage::program
