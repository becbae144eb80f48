// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets a flag at a given time. Work that is to end then looks at the flag.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace ullage::cli {

class Alarm final {
 public:
  explicit Alarm(std::chrono::steady_clock::time_point when) : thread_([this, when] { wait_until(when); }) {}
  ~Alarm() {
    {
      const std::lock_guard lock(lock_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // True from the given time on. Valid as long as this object lives.
  const std::atomic<bool>* flag() const { return &rang_; }

 private:
  void wait_until(std::chrono::steady_clock::time_point when) {
    std::unique_lock lock(lock_);
    if (!changed_.wait_until(lock, when, [this] { return over_; })) rang_ = true;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<bool> rang_{false};
  std::thread thread_;
};

}  // namespace ullage::cli
