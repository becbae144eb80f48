// SPDX-License-Identifier: Apache-2.0
#pragma once

// What long work is at, on stderr: on a terminal one line that is rewritten every second and goes away at the end,
// elsewhere a line every five seconds. Work that takes less than a second says nothing.

#include <condition_variable>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace ullage::cli {

class Progress final {
 public:
  // While a stage runs nobody else may write to `err`.
  Progress(std::ostream& err, bool terminal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stage(std::string name);
  // As above with a name that changes while the stage runs; it is asked for by a thread of this object's.
  void stage(std::function<std::string()> name);
  // Says nothing until the next stage and takes the line away: others may write now.
  void pause();

 private:
  void watch();
  void tell(double seconds);

  std::ostream& err_;
  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<std::string()> stage_;  // empty: paused
  bool told_ = false;                   // a line stands on the terminal
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace ullage::cli
