// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ctrl-C and SIGTERM as a wish to stop at the end of the step; the second one ends the process at once with 130.

namespace ullage::dcgan {

// Takes over SIGINT and SIGTERM for its life, and ignores SIGXFSZ so that a file that may not grow is an error of
// write(). One at a time in a process.
class StopRequest final {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool asked() const;
};

}  // namespace ullage::dcgan
