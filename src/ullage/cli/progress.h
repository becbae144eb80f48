// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shows on stderr what long work is doing, and for how long this object has existed. On a terminal it is one line,
// rewritten every second and erased at the end; elsewhere it is a new line every five seconds. The intervals begin with
// the object. A stage that begins and ends within one interval shows nothing.

#include <condition_variable>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace ullage::cli {

class Progress final {
 public:
  // While a stage runs, nothing else may write to `err`.
  Progress(std::ostream& err, bool terminal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stage(std::string name);
  // The same with a name that changes while the stage runs. A thread of this object calls `name`, until pause() or the
  // next stage.
  void stage(std::function<std::string()> name);
  // Shows nothing until the next stage, and erases the line on a terminal. Until then others may write to `err`.
  void pause();

 private:
  void watch();
  void tell(double seconds);

  std::ostream& err_;
  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<std::string()> stage_;  // empty: paused
  bool told_ = false;                   // a line was written since the last pause
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace ullage::cli
