// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions that the parts of libullage_preload.so (preload.cpp, python_import.cpp, large_requests.cpp,
// system_calls.cpp) call of each other, and those that it exports.

#include <dlfcn.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>

namespace ullage::preload {

// The scripts that a Python runs at the end of `import torch`. Each variable names a file; unset or empty: there is
// none. They are drycard/in_python.py in a dry run, python/ullage/_watch.py below `ullage explain -- COMMAND`, and
// advise/switches.py for `ullage advise` and `ullage run --allow`. python_import.cpp runs them in this order.
inline constexpr const char* kDryScript = "ULLAGE_DRYCARD_SCRIPT";
inline constexpr const char* kExplainScript = "ULLAGE_EXPLAIN_SCRIPT";
inline constexpr const char* kSwitchesScript = "ULLAGE_SWITCHES_SCRIPT";
bool is_set(const char* variable);
inline bool has_scripts() { return is_set(kDryScript) || is_set(kExplainScript) || is_set(kSwitchesScript); }

// Opens the runtime if this process runs under `ullage run` with a ledger, torch is mapped and the runtime is not. If
// it cannot be opened, prints why on stderr. May be called on any thread, and more than once.
void bring_in_the_runtime();

// The resident bytes of this process; 0 if the kernel does not tell. Allocates nothing.
std::size_t resident_bytes();

// To be called before Python starts. If the process holds a Python, has the runtime brought in and those files run as
// soon as `import torch` is done. Otherwise does nothing.
void wait_for_import_of_torch();

// A function of that name behind this library. The dynamic loader allocates nothing to find it, but takes its lock. So
// functions that stand before those of libc find all theirs before the process has a second thread.
template <typename Function>
class Next final {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    return found()(arguments...);
  }
  Function found() {
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function;
  }

 private:
  const char* const name_;
  std::atomic<Function> function_{nullptr};
};

}  // namespace ullage::preload

// For ullage.run() of the Python package, in a process that `ullage run` did not start. Opens the runtime, which needs
// torch to be mapped. Returns null, or why it cannot be opened (valid until the next call).
extern "C" __attribute__((visibility("default"))) const char* ullage_open_runtime();

// For the runtime: calls `listener` before a request of 4 MiB or more of malloc, or of a function like it, is served.
// It runs on the thread that requests. `listener` may allocate less than that. Null: nobody is called.
extern "C" __attribute__((visibility("default"))) void ullage_announce_large_requests(void (*listener)(std::size_t));

// For the runtime: has `hold` called with the buffers of a system call of the program that failed with EFAULT.
// `written`: the call writes to them. True: the bytes are there now and stay, so the call is tried once more, and then
// `let_go` is called. Null: nobody is called.
extern "C" __attribute__((visibility("default"))) void ullage_heal_system_calls(
    bool (*hold)(const iovec* buffers, std::size_t count, bool written), void (*let_go)());

// For the runtime: true if what write() put on stderr last did not end a line. The caller ends it, so it is called
// once.
extern "C" __attribute__((visibility("default"))) bool ullage_stderr_line_is_open();
