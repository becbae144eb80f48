// SPDX-License-Identifier: Apache-2.0
#pragma once

// A flag that becomes true at a given time. Work that can be stopped looks at it.

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

  // As long as the object lives.
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
