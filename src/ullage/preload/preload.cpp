// SPDX-License-Identifier: Apache-2.0

// libullage_preload.so brings Ullage's runtime into programs that were never linked to it; `ullage run` puts it into
// LD_PRELOAD. Every process of the program's tree loads it, shells and editors too. So it needs nothing but libc. It
// looks once, when it is loaded, at what is mapped, and does nothing if there is neither torch nor Python.
//
// What it does in a process; the first line that applies counts:
//
//   the environment names scripts (kDryScript and the others in preload.h)  ->  a Python runs them after its
//                                          `import torch`; with a ledger in the environment also as below
//   no ledger in the environment, or a build without torch  ->  does nothing
//   torch is not mapped, and there is no Python  ->  does nothing
//   a Python that has not mapped torch yet  ->  waits for its `import torch` (python_import.cpp), then as below
//   the runtime is mapped already (a linked program)  ->  does nothing
//   torch is of another version than the runtime was built against  ->  prints one line on stderr, opens no runtime
//   else  ->  opens libullage_torch.so by dlopen; its own constructor starts the session
//
// The order of constructors: dlopen initialises what the runtime needs before the runtime itself, so torch's own
// constructors have run by then. Those of the program run afterwards, so its first tensor is in the pool. If a process
// ends with torch but without the runtime (it opened torch by dlopen itself), a line on stderr says so.

#include "ullage/preload/preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ullage::preload {
namespace {

constexpr const char* kTorch = "libtorch_cpu.so";  // every program with tensors maps it, those on a card too
constexpr const char* kRuntime = "libullage_torch.so";
constexpr const char* kFolders[] = {"/", "/../lib/"};        // from this library to the runtime
constexpr const char* kBuiltAgainst = ULLAGE_TORCH_VERSION;  // "2.13.0"; empty: there is no runtime in this build

struct Mapped {
  const char* torch = nullptr;  // its file; null: it is not mapped
  bool runtime = false;
};

int look_at(dl_phdr_info* info, std::size_t, void* seen) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash != nullptr ? slash + 1 : info->dlpi_name;
  auto* mapped = static_cast<Mapped*>(seen);
  if (std::strcmp(name, kTorch) == 0) mapped->torch = info->dlpi_name;
  if (std::strcmp(name, kRuntime) == 0) mapped->runtime = true;
  return 0;
}

Mapped what_is_mapped() {
  Mapped mapped;
  dl_iterate_phdr(look_at, &mapped);
  return mapped;
}

struct Text {
  char chars[64] = "";
};
struct Reason {
  char chars[512] = "";
};

// Returns the version of torch, such as "2.13.0". Asks torch's plain C interface
// (torch/csrc/inductor/aoti_torch/c/shim.h), which exists since 2.7. Major, minor and patch are the three upper bytes.
// at::show_config() would wake the driver of a card. The symbol is looked up in `file`, because Python maps torch for
// itself alone (RTLD_LOCAL).
Text torch_version(const char* file) {
  using Version = std::uint64_t (*)();
  Text text;
  void* torch = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  const auto version = reinterpret_cast<Version>(torch != nullptr ? dlsym(torch, "aoti_torch_abi_version") : nullptr);
  if (version == nullptr) {
    std::snprintf(text.chars, sizeof text.chars, "older than 2.7");
    return text;
  }
  const std::uint64_t parts = version();
  std::snprintf(text.chars, sizeof text.chars, "%u.%u.%u", static_cast<unsigned>(parts >> 56 & 255),
                static_cast<unsigned>(parts >> 48 & 255), static_cast<unsigned>(parts >> 40 & 255));
  return text;
}

// Finds the runtime's file beside this library, or in the folder `lib` beside this library's folder. False: there is
// none.
bool find_runtime(char (&path)[PATH_MAX]) {
  Dl_info own = {};
  if (dladdr(reinterpret_cast<const void*>(&find_runtime), &own) == 0 || own.dli_fname == nullptr) return false;
  const char* slash = std::strrchr(own.dli_fname, '/');
  const int folder = slash != nullptr ? static_cast<int>(slash - own.dli_fname) : 0;
  for (const char* between : kFolders) {
    const int length = std::snprintf(path, sizeof path, "%.*s%s%s", folder, own.dli_fname, between, kRuntime);
    if (length > 0 && length < PATH_MAX && access(path, R_OK) == 0) return true;
  }
  return false;
}

bool runs_under_ullage() { return is_set("ULLAGE_LEDGER") && *kBuiltAgainst != '\0'; }

bool told = false;  // this process has printed why there is no runtime

void tell(const char* format, ...) {
  told = true;
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
}

pid_t began = 0;  // pid of the process that start() ran in, if it has a ledger; else 0

__attribute__((constructor)) void start() {
  if (!runs_under_ullage()) {
    if (has_scripts()) wait_for_import_of_torch();
    return;
  }
  began = getpid();
  if (what_is_mapped().torch != nullptr) {
    bring_in_the_runtime();
  } else {
    wait_for_import_of_torch();
  }
}

// Reports torch without the runtime. A child made by fork that leaves by exit() reports nothing: its parent does.
__attribute__((destructor)) void end() {
  if (began != getpid() || told) return;
  const Mapped mapped = what_is_mapped();
  if (mapped.torch != nullptr && !mapped.runtime) {
    tell("ullage: %s was loaded in a way that Ullage does not see; this program ran without a budget\n", kTorch);
  }
}

// Opens the runtime if torch is mapped and the runtime is not. False: it cannot be opened, and `why` says why.
bool open_runtime(const Mapped& mapped, Reason& why) {
  if (mapped.torch == nullptr || mapped.runtime) return true;
  const Text version = torch_version(mapped.torch);
  char path[PATH_MAX];
  if (std::strcmp(version.chars, kBuiltAgainst) != 0) {
    std::snprintf(why.chars, sizeof why.chars,
                  "this program runs torch %s, Ullage's runtime was built against %s; build Ullage against torch %s",
                  version.chars, *kBuiltAgainst != '\0' ? kBuiltAgainst : "none", version.chars);
  } else if (!find_runtime(path)) {
    std::snprintf(why.chars, sizeof why.chars, "%s is not in the folder of libullage_preload.so; install both together",
                  kRuntime);
  } else if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::snprintf(why.chars, sizeof why.chars, "the runtime cannot be loaded: %s", dlerror());
  } else {
    return true;
  }
  return false;
}

}  // namespace

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

std::size_t resident_bytes() {
  char text[128] = "";
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  const char* second = got > 0 ? std::strchr(text, ' ') : nullptr;  // size resident ..., in pages
  return second != nullptr ? std::strtoull(second, nullptr, 10) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void bring_in_the_runtime() {
  if (!runs_under_ullage()) return;
  Reason why;
  if (!open_runtime(what_is_mapped(), why)) tell("ullage: %s; this program runs without a budget\n", why.chars);
}

}  // namespace ullage::preload

const char* ullage_open_runtime() {
  using namespace ullage::preload;
  static Reason why;
  const Mapped mapped = what_is_mapped();
  if (mapped.torch == nullptr) return "torch is not loaded yet; import it first";
  return open_runtime(mapped, why) ? nullptr : why.chars;
}
