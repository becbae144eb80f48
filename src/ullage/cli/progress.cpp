// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/progress.h"

#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

Progress::Progress(std::ostream& err, bool terminal) : err_(err), terminal_(terminal), watcher_([this] { watch(); }) {}

Progress::~Progress() {
  pause();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  watcher_.join();
}

void Progress::stage(std::string name) {
  stage([name = std::move(name)] { return name; });
}

void Progress::stage(std::function<std::string()> name) {
  const std::lock_guard lock(mutex_);
  stage_ = std::move(name);
}

void Progress::pause() {
  const std::lock_guard lock(mutex_);
  stage_ = nullptr;
  if (std::exchange(told_, false) && terminal_) err_ << kEraseLine << std::flush;
}

void Progress::watch() {
  const Clock::time_point began = Clock::now();
  const auto interval = std::chrono::seconds(terminal_ ? 1 : 5);
  std::unique_lock lock(mutex_);
  for (Clock::time_point next = began + interval; !over_; next += interval) {
    changed_.wait_until(lock, next, [this] { return over_; });
    if (!over_ && stage_) tell(std::chrono::duration<double>(Clock::now() - began).count());
  }
}

void Progress::tell(double seconds) {
  const std::string line =
      fmt::format("ullage: {}, {:.0f} s", report::clip(report::clean(stage_(), false), 60, true), seconds);
  err_ << (terminal_ ? kEraseLine : "") << line << (terminal_ ? "" : "\n") << std::flush;
  told_ = true;
}

}  // namespace ullage::cli
