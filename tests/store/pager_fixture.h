// SPDX-License-Identifier: Apache-2.0
#pragma once

// Has what the pager's tests share: a pager on real pages and a real file, a fault handler, and file system calls that
// a test can make fail.

#include "ullage/store/os_pages.h"
#include "ullage/store/pager.h"
#include "ullage/store/spill_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace ullage::store {

inline Pager* faults_go_to = nullptr;

inline void on_fault(int number, siginfo_t* info, void*) {
  const Address at{reinterpret_cast<std::uint64_t>(info->si_addr)};
  if (faults_go_to == nullptr || faults_go_to->on_fault(at).what != Pager::Fault::Healed) std::signal(number, SIG_DFL);
}

// Make one of the coming calls fail. While `writes_wait` is set, a write that is done does not return.
inline std::atomic<int> writes_until_failure{-1};
inline std::atomic<int> reads_until_failure{-1};

inline std::atomic<bool> writes_wait{false};
inline std::atomic<int> writes_done{0};

inline ssize_t failing_write(int fd, const void* from, size_t size, off_t at) {
  if (writes_until_failure-- == 0) return errno = EIO, -1;
  const ssize_t written = SpillCalls::system().write(fd, from, size, at);
  ++writes_done;
  while (writes_wait) std::this_thread::yield();
  return written;
}
inline std::function<void()> during_read;  // called once, by the next read

inline ssize_t failing_read(int fd, void* into, size_t size, off_t at) {
  if (during_read) std::exchange(during_read, nullptr)();
  if (reads_until_failure-- == 0) return errno = EIO, -1;
  return SpillCalls::system().read(fd, into, size, at);
}

class PagerTest : public testing::Test {
 protected:
  void open(Bytes limit, Bytes spill = 1_GiB, Pager::Settings settings = {}) {
    faults_go_to = nullptr;
    pager_.reset();
    store_.reset();
    pages_ = std::make_unique<OsPages>();
    limit_ = std::make_unique<FixedLimit>(limit);
    auto store = Store::create(*pages_, *limit_, {16_GiB, 16384});
    ASSERT_TRUE(store) << store.error().text();
    store_ = std::move(*store);
    SpillFile::Options options;
    options.calls.write = &failing_write;
    options.calls.read = &failing_read;
    writes_until_failure = reads_until_failure = -1;
    auto file = SpillFile::open({std::filesystem::temp_directory_path().string(), spill}, options);
    ASSERT_TRUE(file) << file.error().text();
    file_ = std::move(*file);
    pager_ = Pager::create(*store_, file_.get(), settings);
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
    faults_go_to = pager_.get();
  }
  void TearDown() override {
    faults_go_to = nullptr;
    sigaction(SIGSEGV, &before_, nullptr);
    if (!has_background_) return;
    static_cast<void>(pager_.release());
    static_cast<void>(file_.release());
    static_cast<void>(store_.release());
    static_cast<void>(limit_.release());
    static_cast<void>(pages_.release());
  }
  // The thread never ends, so the pager must live forever, too.
  void run_background() {
    has_background_ = true;
    std::thread([pager = pager_.get()] { pager->run_in_background(); }).detach();
  }

 public:
  static std::uint64_t* words(Address at) { return reinterpret_cast<std::uint64_t*>(at.value); }
  // Not checked by the thread sanitizer. It would see an access before the page fault that orders it after the moves of
  // other threads. So it would report a race that does not exist.
  [[gnu::no_sanitize_thread]] static void write(Address at, Bytes size, std::uint64_t seed) {
    for (std::uint64_t i = 0; i < size.count / 8; ++i) words(at)[i] = seed * 0x9e3779b97f4a7c15ull + i;
  }
  [[gnu::no_sanitize_thread]] static bool holds(Address at, Bytes size, std::uint64_t seed) {
    for (std::uint64_t i = 0; i < size.count / 8; ++i) {
      if (words(at)[i] != seed * 0x9e3779b97f4a7c15ull + i) return false;
    }
    return true;
  }

 protected:
  Address make(Bytes size, std::uint64_t seed) {
    const auto placed = pager_->allocate(size);
    if (!std::holds_alternative<Address>(placed)) throw std::runtime_error("no room");
    write(std::get<Address>(placed), size, seed);
    return std::get<Address>(placed);
  }
  std::optional<Shortage> begin(OpSignature signature, std::initializer_list<Address> inputs, bool written = false) {
    std::vector<OpInput> list;
    for (const Address at : inputs) list.push_back({at, 1_MiB, written});
    return pager_->begin_op(signature, list);
  }

  std::unique_ptr<OsPages> pages_;
  std::unique_ptr<FixedLimit> limit_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SpillFile> file_;
  std::unique_ptr<Pager> pager_;
  struct sigaction before_ {};
  bool has_background_ = false;
};

}  // namespace ullage::store
