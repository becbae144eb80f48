// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares what the sources of libullage_preload.so call of each other, and what the library exports for the runtime
// and the Python package. The library also exports the functions of libc that it stands before, such as malloc,
// mmap and read. Those are not declared here, but defined in large_requests.cpp, file_mappings.cpp and
// system_calls.cpp.

#include <dlfcn.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>

namespace ullage::preload {

// These environment variables name the scripts that a Python runs at the end of `import torch`; unset or empty: there
// is none. In a dry run it is drycard/in_python.py; below `ullage explain -- COMMAND`, python/ullage/_watch.py; for
// `ullage advise` and `ullage run --allow`, advise/switches.py. python_import.cpp runs them in this order.
inline constexpr const char* kDryScript = "ULLAGE_DRYCARD_SCRIPT";
inline constexpr const char* kExplainScript = "ULLAGE_EXPLAIN_SCRIPT";
inline constexpr const char* kSwitchesScript = "ULLAGE_SWITCHES_SCRIPT";
bool is_set(const char* variable);
inline bool has_scripts() { return is_set(kDryScript) || is_set(kExplainScript) || is_set(kSwitchesScript); }

// If this environment variable is set, a Python runs the text of defer_compiler.py before those scripts.
inline constexpr const char* kDeferCompiler = "ULLAGE_DEFER_COMPILER";
extern const char* const kDeferCompilerText;

// Opens the runtime if the environment has a ledger (ULLAGE_LEDGER), torch is mapped and the runtime is not. If the
// runtime cannot be opened, prints why on stderr. May be called on any thread, and more than once.
void bring_in_the_runtime();

// The resident bytes of this process; 0 if /proc/self/statm cannot be read. Allocates nothing.
std::size_t resident_bytes();

// Announces to the runtime that this process is about to start another program, which will take memory.
void announce_a_program();

// Call it before Python starts. If Python is linked to this process, the runtime is brought in and the scripts run as
// soon as `import torch` is done. Otherwise does nothing.
void wait_for_import_of_torch();

// Calls the function of that name in the libraries that come after this one, such as libc. Looks it up at the first
// call. The dynamic loader allocates nothing for that, but takes its own lock. So the parts that stand before functions
// of libc call found() for all of them in a constructor, before the process has a second thread.
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
// torch to be mapped. Returns null if the runtime is open, else why it cannot be opened (valid until the next call).
extern "C" __attribute__((visibility("default"))) const char* ullage_open_runtime();

// For the runtime: calls `listener` before malloc, or a function like it, serves a request of 4 MiB or more. It also
// calls it with 4 MiB when requests of 64 KiB and more add up to that and the process grew meanwhile. `listener` runs
// on the thread that requests, and must not make such requests itself. If it returns false, the request fails as if
// there were no memory. It must not if `may_fail` is false: calloc and realloc do not touch all that they are asked
// for, and a malloc that is not libc's may serve a block from pages that it kept. Null: nobody is called.
extern "C" __attribute__((visibility("default"))) void ullage_announce_large_requests(
    bool (*listener)(std::size_t bytes, bool may_fail));

// For the runtime: calls `starts` before a Python starts another program, on the thread that does. Null: nobody is
// called.
extern "C" __attribute__((visibility("default"))) void ullage_announce_programs(void (*starts)());

// For the runtime: calls `mapped` after the program has mapped a file for itself alone, to read it and not to run it.
// Calls `unmapping` before whatever stands at an address is taken away, replaced, or given another access. If that
// returns true, part of a file was there, and `unmapped` is called once the kernel is done. All run on the program's
// thread. Null: nobody is called.
extern "C" __attribute__((visibility("default"))) void ullage_announce_file_mappings(
    void (*mapped)(void* at, std::size_t size, bool writable), bool (*unmapping)(void* at, std::size_t size),
    void (*unmapped)(void* at, std::size_t size));

// For the runtime: has `hold` called with the buffers of a system call of the program that failed with EFAULT.
// `written`: the call writes to them. If `hold` returns true, the bytes are there now and stay. Then the call is tried
// once more, and `let_go` is called after it. False: the call fails with EFAULT. Null: nobody is called.
extern "C" __attribute__((visibility("default"))) void ullage_heal_system_calls(
    bool (*hold)(const iovec* buffers, std::size_t count, bool written), void (*let_go)());

// For the runtime: has `compare` called in place of c10::isSharedStorageAlias, with two c10::Storage. Null: torch's own
// function is called.
extern "C" __attribute__((visibility("default"))) void ullage_compare_storages(bool (*compare)(const void* first,
                                                                                               const void* second));

// For the runtime: true if the program's last write() to stderr did not end with a newline. The caller must end the
// line, because the next call returns false.
extern "C" __attribute__((visibility("default"))) bool ullage_stderr_line_is_open();
